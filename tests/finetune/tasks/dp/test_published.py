"""KLUE-DP as published: the recorded oddities, what was repaired, and decoding without a tree."""

from __future__ import annotations

import json

import numpy as np
import pytest

from corpus.documents.errors import BadInput
from finetune.data.files import read_text
from finetune.tasks.dp.task import KLUE_DP
from tests.finetune.records import record_of

PUBLISHED = KLUE_DP.with_protocol("klue-baseline")
WORDS = ["비가", "\u200b", "온다."]


@pytest.fixture
def quirks(shared):
    """Oddities of the published conversion, by name."""
    lines = map(json.loads, read_text(shared("oracle/features_public.jsonl.zst")).splitlines())
    return {line["quirk"]: line for line in lines if line.get("task") == "klue-dp" and "quirk" in line}


def write_file(path, sentences):
    """Sentences of (form, tags, head, type), guids ``made-up-0``, ``made-up-1`` …"""
    blocks = []
    for number, words in enumerate(sentences):
        rows = ["\t".join([str(i), form, form, *map(str, rest)]) for i, (form, *rest) in enumerate(words, start=1)]
        blocks.append("\n".join([f"## made-up-{number}\t{' '.join(word[0] for word in words)}", *rows]))
    path.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
    return path


def chain(words):
    """A sentence in which every word hangs on its right neighbour."""
    return [(word, "SL", number if number <= len(words) - 1 else 0, "NP") for number, word in enumerate(words, 2)]


def labels_of(path, tokenizer, max_tokens=256):
    examples = PUBLISHED.read(path)
    features = PUBLISHED.featurize(examples, tokenizer, max_tokens, False)
    return [record_of(PUBLISHED, e, [f], max_tokens) for e, f in zip(examples, features, strict=True)]


def test_a_word_without_sub_words_shifts_the_words_after_it(quirks, klue_tokenizer, tmp_path):
    quirk = quirks["word_without_tokens"]
    (record,) = labels_of(write_file(tmp_path / "a.tsv", [quirk["input"]["words"]]), klue_tokenizer)
    found = {"input_ids": record["input_ids"], **{key: record["labels"][key] for key in ("word_starts", "word_ends")}}
    assert found == quirk["baseline"]


def test_words_shifted_behind_their_sentence_lie_on_its_last_token(tiny_encoder, tmp_path):
    _, tokenizer = tiny_encoder(WORDS)
    path = write_file(tmp_path / "a.tsv", [chain(["비가", "\u200b", "\u200b", "온다."]), chain(["비가"])])
    features = PUBLISHED.featurize(PUBLISHED.read(path), tokenizer, 256, False)
    batch = PUBLISHED.collate(features, 0)
    assert features[0]["last"] == [0, 2, 3, 4, 7]  # of 7 tokens, the last at 6
    assert batch["last"].tolist() == [[0, 2, 3, 4, 6], [0, 2, 0, 0, 0]]
    assert (batch["first"] <= batch["attention_mask"].sum(1, keepdims=True) - 1).all()


def test_a_long_sentence_keeps_the_words_that_end_before_the_cut_at_any_place(quirks, klue_tokenizer, tmp_path):
    words = ["집에"] * 150 + ["갔다."]
    records = labels_of(write_file(tmp_path / "a.tsv", [chain(words), chain(words)]), klue_tokenizer)
    recorded = quirks["long_sentence"]["baseline"]["not_last"]
    for record in records:  # the published code stops at either
        assert len(record["input_ids"]) == recorded["input_ids"]
        assert len(record["labels"]["word_ends"]) == recorded["word_ends_kept"]
        assert len(record["labels"]["word_starts"]) == recorded["word_starts_kept"] - 1
        assert record["labels"]["word_starts"][-1] == recorded["last_word_start"] - 2
        assert record["labels"]["heads"][-2:] == [127, None]  # the head of the last word kept is behind the cut


def test_an_unknown_tag_is_an_error_that_names_the_word(quirks, tmp_path):
    path = write_file(tmp_path / "a.tsv", [chain(WORDS), quirks["unknown_pos"]["input"]["words"]])
    assert "XXX" in quirks["unknown_pos"]["baseline"]["error"]
    with pytest.raises(BadInput, match=r"a.tsv, made-up-1: POS of word 1 ends in 'XXX'"):
        PUBLISHED.read(path)
    assert len(KLUE_DP.read(path)) == 2


def test_every_sentence_keeps_its_own_guid(quirks, tmp_path):
    given = quirks["guid_off_by_one"]["input"]["guids"]
    examples = PUBLISHED.read(write_file(tmp_path / "a.tsv", [chain(WORDS)] * len(given)))
    assert [example.guid for example in examples] == given


def test_damaged_words_stay_as_they_are(tmp_path):
    path = write_file(tmp_path / "a.tsv", [chain(["#NAME?", "0.90%"])])
    path.write_text(path.read_text("utf-8").replace("\t#NAME? 0.90%\n", "\t'비' 0.9%\n"), encoding="utf-8")
    assert PUBLISHED.read(path)[0].inputs["words"] == ["#NAME?", "0.90%"]
    assert KLUE_DP.read(path)[0].inputs["words"] == ["'비'", "0.9%"]


def test_each_word_takes_its_best_head_tree_or_not(tiny_encoder, tmp_path):
    _, tokenizer = tiny_encoder(WORDS)
    examples = PUBLISHED.read(write_file(tmp_path / "a.tsv", [chain(["비가", "비가", "온다."])]))
    features = PUBLISHED.featurize(examples, tokenizer, 256, False)
    arcs = np.array([[0, 5, 1, 2], [0, 3, 1, 2], [1, 3, 2, 0]], dtype=np.float32)
    types = np.arange(12, dtype=np.uint8).reshape(3, 4)
    (prediction,) = PUBLISHED.decode(examples, features, [{"arcs": arcs, "types": types}])
    assert prediction.value == {"heads": [1, 1, 1], "types": ["NP_AJT", "NP_OBJ", "VNP"]}


def test_heads_to_the_left_are_targets_here_only(tiny_encoder, tmp_path):
    _, tokenizer = tiny_encoder(WORDS)
    words = [("비가", "NNG+JKS", 0, "NP"), ("온다.", "VV+EF+SF", 1, "VP")]
    examples = PUBLISHED.read(write_file(tmp_path / "a.tsv", [words]))
    targets = [task.featurize(examples, tokenizer, 256, False)[0]["heads"] for task in (PUBLISHED, KLUE_DP)]
    assert targets == [[0, 1], [0, -100]]


def test_both_protocols_find_the_same_words_in_real_sentences(shared, klue_tokenizer):
    path = shared("data/klue/official/klue-dp-v1.1/klue-dp-v1.1_dev.tsv.zst")
    examples = PUBLISHED.read(path)[:300]
    ours, theirs = (task.featurize(examples, klue_tokenizer, 256, True) for task in (KLUE_DP, PUBLISHED))
    assert ours == theirs
