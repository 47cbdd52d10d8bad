"""Records of features: one for each example, also for those that training leaves out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from finetune.examples import Example
from finetune.features import make_records, write_features
from finetune.registry import TASKS


def test_an_example_without_a_target_has_a_record(tiny_encoder: Any) -> None:
    task = TASKS["klue-dp"]
    inputs = {"words": ["가", "나"], "pos": ["NNG", "VV"]}
    example = Example("1", {"heads": [2, 0], "types": ["NP", "VP"]}, inputs)
    _, tokenizer = tiny_encoder(["가나"])
    assert task.featurize([example], tokenizer, 3, True) == []  # the head of 가 is after the cut
    [record] = make_records(task, [example], tokenizer, 3)
    assert (record["guid"], record["task"]) == ("1", "klue-dp") and record["input_ids"]


@pytest.mark.parametrize(("asked", "length"), [(None, 128), (12, 12), (64, 64)])
def test_inputs_have_the_published_length_unless_another_is_asked_for(
    tmp_path: Path, asked: int | None, length: int
) -> None:
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "가", "##나", "다"]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces), "utf-8")
    records = [{"guid": f"ynat-{n}", "title": "가나 다 " * 99, "label": "경제"} for n in range(2)]
    (tmp_path / "dev.json").write_text(json.dumps(records, ensure_ascii=False), "utf-8")
    target = tmp_path / "out.jsonl"
    vocabulary = str(tmp_path / "vocab.txt")
    assert write_features("ynat", tmp_path / "dev.json", vocabulary, target, "malmoi", asked) == 2
    lines = target.read_text("utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    assert [(one["task"], one["guid"]) for one in found] == [("ynat", "ynat-0"), ("ynat", "ynat-1")]
    assert [len(one["input_ids"]) for one in found] == [length, length]
    assert lines == [json.dumps(one, sort_keys=True, ensure_ascii=False, separators=(",", ":")) for one in found]
