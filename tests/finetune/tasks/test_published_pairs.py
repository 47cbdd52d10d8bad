"""Pairs as published: which text loses tokens, against the pairs on record and a token-by-token reference."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finetune.data.files import find_file, read_text
from finetune.examples import Example
from finetune.registry import TASKS
from finetune.tasks.labels import cut_pair


@given(st.integers(0, 90), st.integers(0, 90), st.integers(16, 80))
def test_the_longer_text_loses_one_token_at_a_time(first: int, second: int, max_tokens: int) -> None:
    lengths = [first, second]
    while sum(lengths) > max_tokens - 3:
        lengths[0 if lengths[0] > lengths[1] else 1] -= 1
    kept = cut_pair([None, *[0] * first, None, *[1] * second, None], max_tokens)
    expected = [0, *range(1, 1 + lengths[0]), first + 1, *range(first + 2, first + 2 + lengths[1]), first + second + 2]
    assert kept == expected


@pytest.mark.parametrize(
    ("task", "first", "second"), [("klue-nli", "premise", "hypothesis"), ("klue-sts", "sentence1", "sentence2")]
)
def test_long_pairs_on_record_are_cut_as_published(shared, klue_tokenizer, task: str, first: str, second: str) -> None:
    lines = [json.loads(line) for line in read_text(shared("oracle/features_public.jsonl.zst")).splitlines()]
    quirks = [line for line in lines if str(line.get("quirk", "")).startswith("truncate_")]
    assert len(quirks) >= 3
    examples = [
        Example("", None, {first: line["input"]["premise"], second: line["input"]["hypothesis"]}) for line in quirks
    ]
    features = TASKS[task].with_protocol("klue-baseline").featurize(examples, klue_tokenizer, 128, False)
    for line, feature in zip(quirks, features, strict=True):
        assert feature["input_ids"] == line["baseline"]["input_ids"], line["quirk"]
        assert feature["token_type_ids"] == line["baseline"]["token_type_ids"], line["quirk"]


@pytest.mark.parametrize("task", ["klue-nli", "klue-sts"])
def test_the_protocols_agree_on_real_pairs(shared, klue_tokenizer, task: str) -> None:
    record = TASKS[task]
    examples = record.read(find_file(shared("data/klue"), record.files.dev))[:400]
    ours = record.featurize(examples, klue_tokenizer, 128, False)
    assert ours == record.with_protocol("klue-baseline").featurize(examples, klue_tokenizer, 128, False)
    assert max(len(feature["input_ids"]) for feature in ours) < 128
