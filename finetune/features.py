"""Model inputs and targets of each example of a file as JSON lines (``malmoi finetune features``).

The format is canonical (sorted keys, no spaces, unescaped characters), so two files can be compared line by line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerBase

from corpus.documents.atomic_files import atomic_write
from finetune.config import ProtocolName
from finetune.encoder.loading import load_tokenizer
from finetune.examples import Example, Feature
from finetune.registry import find_task
from finetune.task import Task


def write_features(
    task_name: str, file: Path, tokenizer: str, target: Path, protocol: ProtocolName, max_tokens: int | None
) -> int:
    """Convert an official file and write one record per example, in order; returns their number.

    Args:
        tokenizer: a Hugging Face folder or Hub name, or a ``vocab.txt`` of cased WordPiece.
        max_tokens: maximum input length; None: the published length of the task.
    """
    task = find_task(task_name).with_protocol(protocol)
    examples = task.read(file)
    loaded = load_tokenizer(tokenizer, task.special_tokens)
    records = make_records(task, examples, loaded, max_tokens or task.published.hyperparameters.max_tokens)
    atomic_write(target, "".join(canonical(record) + "\n" for record in records))
    return len(examples)


def make_records(
    task: Task, examples: Sequence[Example], tokenizer: PreTrainedTokenizerBase, max_tokens: int
) -> Iterator[dict[str, Any]]:
    """The record of each example, in order."""
    by_example: list[list[Feature]] = [[] for _ in examples]
    for feature in task.featurize(examples, tokenizer, max_tokens, False):
        by_example[feature["example"]].append(feature)
    for example, own in zip(examples, by_example, strict=True):
        yield {"task": task.name, "guid": example.guid, **task.inspection.record(example, own, max_tokens)}


def canonical(record: dict[str, Any]) -> str:
    """One line of JSON; equal records give equal lines."""
    return json.dumps(record, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
