"""What a model sees: every example of a file as the record that a protocol makes of it, one JSON line each.

The form is canonical (keys sorted, no spaces, characters as they are), so two files can be compared line by line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from finetune.config import BadInput, ProtocolName
from finetune.encoder import load_tokenizer
from finetune.registry import TASKS
from finetune.task import Feature


def write_features(
    task_name: str, file: Path, tokenizer: str, target: Path, protocol: ProtocolName, max_tokens: int | None
) -> int:
    """Convert an official file and write one record an example, in the order of the file.

    Args:
        tokenizer: a Hugging Face folder or Hub name, or a ``vocab.txt`` of cased WordPiece.
        max_tokens: longest input; None: the published one of the task.

    Returns:
        the number of records.

    Raises:
        BadInput: no such task, or a file or tokenizer that cannot be used.
    """
    if task_name not in TASKS:
        raise BadInput(f"{task_name}: no such task; the tasks are {', '.join(TASKS)}")
    partial = target.with_name(target.name + ".partial")
    written = 0
    with partial.open("w", encoding="utf-8", newline="\n") as out:
        for record in make_records(task_name, file, tokenizer, protocol, max_tokens):
            out.write(json.dumps(record, sort_keys=True, ensure_ascii=False, separators=(",", ":")) + "\n")
            written += 1
    partial.replace(target)
    return written


def make_records(
    task_name: str, file: Path, tokenizer: str, protocol: ProtocolName, max_tokens: int | None = None
) -> Iterator[dict[str, Any]]:
    """The records of ``write_features``, one by one."""
    task = TASKS[task_name].under(protocol)
    examples = task.read(file)
    longest = max_tokens or task.defaults.max_tokens
    features = task.featurize(examples, load_tokenizer(tokenizer, task.special_tokens), longest, False)
    by_example: list[list[Feature]] = [[] for _ in examples]
    for feature in features:
        by_example[feature["example"]].append(feature)
    for example, own in zip(examples, by_example, strict=True):
        yield {"task": task_name, "guid": example.guid, **task.record(example, own, longest)}
