"""Records of features: one for each example, also for those that training leaves out."""

from __future__ import annotations

from typing import Any

from finetune.examples import Example
from finetune.registry import TASKS
from tests.finetune.records import make_records


def test_an_example_without_a_target_has_a_record(tiny_encoder: Any) -> None:
    task = TASKS["klue-dp"]
    inputs = {"words": ["가", "나"], "pos": ["NNG", "VV"]}
    example = Example("1", {"heads": [2, 0], "types": ["NP", "VP"]}, inputs)
    _, tokenizer = tiny_encoder(["가나"])
    assert task.featurize([example], tokenizer, 3, True) == []  # the head of 가 is after the cut
    [record] = make_records(task, [example], tokenizer, 3)
    assert (record["guid"], record["task"]) == ("1", "klue-dp") and record["input_ids"]
