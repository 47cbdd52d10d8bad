"""KLUE-RE as published: every odd sentence on record, and what happens where the published code crashes."""

from __future__ import annotations

import json

import pytest

from finetune.data.files import find_file, read_text
from finetune.examples import Example
from finetune.tasks.re.markers import MARKERS
from finetune.tasks.re.task import KLUE_RE

MARKER_IDS = (32_000, 32_001, 32_002, 32_003)
CRASHES = {"entity_at_end", "subject_at_end", "equal"}
KEEPS_NO_MORE_THAN = 256


@pytest.fixture
def quirks(shared):
    lines = [json.loads(line) for line in read_text(shared("oracle/features_public.jsonl.zst")).splitlines()]
    return [line for line in lines if line.get("task") == "klue-re" and "quirk" in line]


@pytest.fixture
def convert(klue_tokenizer):
    klue_tokenizer.add_tokens(list(MARKERS), special_tokens=True)

    def convert(protocol, examples) -> list[list[int]]:
        features = KLUE_RE.with_protocol(protocol).featurize(examples, klue_tokenizer, KEEPS_NO_MORE_THAN, False)
        return [feature["input_ids"] for feature in features]

    return convert


def example_of(given) -> Example:
    spans = [
        (given[f"{role}_entity"]["start_idx"], given[f"{role}_entity"]["end_idx"] + 1) for role in ("subject", "object")
    ]
    return Example("", None, {"sentence": given["sentence"], "subject": spans[0], "object": spans[1]})


def test_every_invented_sentence_on_record_is_converted_as_published_or_corrected(
    quirks, convert, klue_tokenizer
) -> None:
    invented = [quirk for quirk in quirks if "input" in quirk]
    assert {quirk["quirk"] for quirk in invented} > CRASHES
    converted = convert("klue-baseline", [example_of(quirk["input"]) for quirk in invented])
    for quirk, ids in zip(invented, converted, strict=True):
        if quirk["quirk"] in CRASHES:
            assert "input_ids" not in quirk["baseline"]
            assert all(ids.count(id_) == 1 for id_ in MARKER_IDS), quirk["quirk"]
            text = klue_tokenizer.decode(ids, skip_special_tokens=True)
            assert text.replace(" ", "") == quirk["input"]["sentence"].replace(" ", ""), quirk["quirk"]
        else:
            assert ids == quirk["baseline"]["input_ids"], quirk["quirk"]


def test_no_invented_sentence_on_record_loses_a_marker_or_doubles_text_under_malmoi(quirks, convert) -> None:
    invented = [quirk for quirk in quirks if "input" in quirk]
    for quirk, ids in zip(invented, convert("malmoi", [example_of(q["input"]) for q in invented]), strict=True):
        assert all(ids.count(id_) == 1 for id_ in MARKER_IDS), quirk["quirk"]
        assert len(ids) <= KEEPS_NO_MORE_THAN
        if quirk["quirk"] in {"nested", "overlap"}:
            assert len(ids) < len(quirk["baseline"]["input_ids"]), quirk["quirk"]


def test_a_piece_behind_an_end_marker_becomes_unknown_only_as_published(shared, quirks, convert) -> None:
    real = {quirk["guid"]: quirk for quirk in quirks if "guid" in quirk}
    read = KLUE_RE.read(find_file(shared("data/klue"), KLUE_RE.files.dev))
    examples = [example for example in read if example.guid in real]
    assert len(examples) == len(real) > 0
    rows = zip(examples, convert("klue-baseline", examples), convert("malmoi", examples), strict=True)
    for example, published, right in rows:
        quirk = real[example.guid]
        position = published.index(dict(zip(MARKERS, MARKER_IDS, strict=True))[quirk["baseline"]["after"]]) + 1
        assert published == quirk["baseline"]["input_ids"], example.guid
        assert right == [*published[:position], quirk["sound"]["id"], *published[position + 1 :]], example.guid


@pytest.mark.parametrize(
    ("subject", "object_", "marked"),
    [
        ((0, 4), (1, 2), "<subj>가나다라</subj><obj>나</obj>다라마"),
        ((1, 2), (0, 4), "<obj>가나다라</obj><subj>나</subj>다라마"),
        ((0, 3), (0, 1), "<obj>가</obj><subj>가나다</subj>라마"),
        ((2, 4), (0, 3), "<obj>가나다</obj><subj>다라</subj>마"),
        ((1, 3), (1, 3), "가<subj><obj>나다</obj></subj>라마"),
        ((4, 5), (0, 1), "<obj>가</obj>나다라<subj>마</subj>"),
    ],
)
def test_overlapping_entities_are_both_written_whole(subject, object_, marked: str, tiny_encoder) -> None:
    _, tokenizer = tiny_encoder(["가나다라마"])
    tokenizer.add_tokens(list(MARKERS), special_tokens=True)
    example = Example("", None, {"sentence": "가나다라마", "subject": subject, "object": object_})
    (feature,) = KLUE_RE.with_protocol("klue-baseline").featurize([example], tokenizer, 64, False)
    tokens = tokenizer.convert_ids_to_tokens(feature["input_ids"])
    assert "".join(tokens[1:-1]).replace("#", "") == marked
