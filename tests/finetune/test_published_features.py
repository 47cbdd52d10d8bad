"""Protocol klue-baseline feeds a model what the published code feeds it: equal records for every example on record.

Another file of the same schema can be put in the place of the public one by the environment variable
MALMOI_FEATURES_ORACLE.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from finetune.data.files import find_file, read_text
from finetune.encoder.loading import load_tokenizer
from finetune.registry import TASKS
from finetune.task_names import TASK_NAMES
from tests.finetune.records import canonical, make_records

Records = list[dict[str, Any]]


@pytest.fixture(scope="module")
def published(shared: Callable[[str], Path]) -> Records:
    path = os.environ.get("MALMOI_FEATURES_ORACLE")
    lines = read_text(Path(path) if path else shared("oracle/features_public.jsonl.zst")).splitlines()
    records = [json.loads(line) for line in lines]
    return [record for record in records if "task" in record and "quirk" not in record]


@pytest.mark.parametrize("name", TASK_NAMES)
def test_every_published_record_is_met(name: str, published: Records, shared: Callable[[str], Path]) -> None:
    task = TASKS[name].with_protocol("klue-baseline")
    dev = find_file(shared("data/klue"), task.files.dev)
    assert dev is not None
    examples = {example.guid: example for example in task.read(dev)}
    tokenizer = load_tokenizer(str(shared("data/klue/vocab/klue-bert-base-vocab.txt")), task.special_tokens)
    by_length: dict[int, Records] = {}
    for record in (record for record in published if record["task"] == name):
        by_length.setdefault(record.get("max_seq_length", task.published.hyperparameters.max_tokens), []).append(record)
    assert by_length
    for max_tokens, expected in by_length.items():
        ours = make_records(task, [examples[record["guid"]] for record in expected], tokenizer, max_tokens)
        for record, wanted in zip(ours, expected, strict=True):
            assert canonical(record) == canonical(wanted), wanted["guid"]
