"""KLUE-RE: markers around two spans, whatever their position."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from finetune.config import BadInput
from finetune.files import find_files
from finetune.predict import predict, to_tensors
from finetune.task import Example, Hyperparameters, Row
from finetune.tasks.klue_re import KLUE_RE, featurize_re, read_re
from finetune.tasks.re_markers import MARKERS, keep_markers, mark_entities
from finetune.train import seed_everything, train

SENTENCE = "김하늘은 한빛은행의 행장이다"
RECORD: dict[str, Any] = {
    "guid": "klue-re-v1_dev_00000",
    "sentence": SENTENCE,
    "subject_entity": {"word": "김하늘", "start_idx": 0, "end_idx": 2, "type": "PER"},
    "object_entity": {"word": "한빛은행", "start_idx": 5, "end_idx": 8, "type": "ORG"},
    "label": "per:employee_of",
}


def write(folder: Path, records: list[dict[str, Any]]) -> Path:
    path = folder / "re.json"
    path.write_text(json.dumps(records), "utf-8")
    return path


@pytest.fixture
def examples(tmp_path: Path) -> list[Example]:
    title = {**RECORD, "guid": "1", "label": "per:title"}
    title["object_entity"] = {"word": "행장", "start_idx": 11, "end_idx": 12, "type": "POH"}
    founded = {**RECORD, "guid": "2", "label": "org:founded", "sentence": "푸른들은 1987년에 섰다"}
    founded["subject_entity"] = {"word": "푸른들", "start_idx": 0, "end_idx": 2, "type": "ORG"}
    founded["object_entity"] = {"word": "1987년", "start_idx": 5, "end_idx": 9, "type": "DAT"}
    return read_re(write(tmp_path, [RECORD, title, founded]))


@pytest.mark.parametrize(
    ("subject", "object_", "marked"),
    [
        ((0, 3), (5, 9), "<subj>김하늘</subj>은 <obj>한빛은행</obj>의 행장이다"),
        ((5, 7), (5, 9), "김하늘은 <obj><subj>한빛</subj>은행</obj>의 행장이다"),
        ((7, 9), (5, 9), "김하늘은 <obj>한빛<subj>은행</subj></obj>의 행장이다"),
        ((5, 9), (5, 9), "김하늘은 <subj><obj>한빛은행</obj></subj>의 행장이다"),
        ((5, 7), (7, 9), "김하늘은 <subj>한빛</subj><obj>은행</obj>의 행장이다"),
        ((5, 8), (7, 9), "김하늘은 <subj>한빛<obj>은</subj>행</obj>의 행장이다"),
        ((11, 15), (0, 3), "<obj>김하늘</obj>은 한빛은행의 <subj>행장이다</subj>"),
    ],
)
def test_spans_may_nest_touch_overlap_or_end_the_sentence(subject, object_, marked: str) -> None:
    assert mark_entities(SENTENCE, subject, object_) == marked


spans = st.tuples(st.integers(0, 8), st.integers(1, 6)).map(lambda s: (s[0], min(s[0] + s[1], 9)))


@given(spans, spans)
def test_markers_lose_and_double_no_text(subject, object_) -> None:
    marked = mark_entities("가나다라마바사아자", subject, object_)
    for start, end, span in ((MARKERS[0], MARKERS[1], subject), (MARKERS[2], MARKERS[3], object_)):
        inside = marked.split(start)[1].split(end)[0]
        assert "".join(c for c in inside if "가" <= c <= "힣") == "가나다라마바사아자"[slice(*span)]
    for marker in MARKERS:
        assert marked.count(marker) == 1
        marked = marked.replace(marker, "")
    assert marked == "가나다라마바사아자"


@given(st.lists(st.integers(0, 60), min_size=4, max_size=4, unique=True), st.integers(8, 62))
def test_no_marker_is_lost_to_truncation(positions: list[int], room: int) -> None:
    ids = [-i if i in positions else i for i in range(100, 161)]
    for number, position in enumerate(sorted(positions)):
        ids[position] = -1 - number
    kept = keep_markers(ids, [-1, -2, -3, -4], room)
    assert len(kept) == min(room, 61)
    assert [id_ for id_ in kept if id_ < 0] == [-1, -2, -3, -4]
    assert [id_ for id_ in ids if id_ in kept] == kept


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"label": "per:boss"}, "'label' is 'per:boss'"),
        ({"subject_entity": None}, "'subject_entity' should be an object"),
        ({"object_entity": {"start_idx": 5, "end_idx": 99}}, "spans characters 5 to 99"),
        (
            {"object_entity": {"word": "행장", "start_idx": 5, "end_idx": 6}},
            "names '행장', but its characters are '한빛'",
        ),
    ],
)
def test_a_wrong_record_is_named_with_its_field(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput, match=f"klue-re-v1_dev_00000: .*{says}"):
        read_re(write(tmp_path, [{**RECORD, **change}]))


@pytest.fixture
def tiny_re(tiny_encoder):
    def build(kind: str = "bert"):
        encoder, tokenizer = tiny_encoder([SENTENCE, "푸른들은 1987년에 섰다"], kind)
        tokenizer.add_tokens(list(MARKERS), special_tokens=True)
        return encoder, tokenizer

    return build


def test_a_particle_behind_a_marker_stays_a_continuation(examples: list[Example], tiny_re) -> None:
    _, tokenizer = tiny_re()
    tokens = tokenizer.convert_ids_to_tokens(featurize_re(examples[:1], tokenizer, 64, False)[0]["input_ids"])
    assert tokens[:8] == ["[CLS]", "<subj>", "김", "##하", "##늘", "</subj>", "##은", "<obj>"]


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_scores_depend_on_neither_batch_mates_nor_padding(examples: list[Example], tiny_re, kind: str) -> None:
    encoder, tokenizer = tiny_re(kind)
    features = featurize_re(examples, tokenizer, 64, False)
    features[0]["input_ids"] = features[0]["input_ids"][:9]
    features[0]["token_type_ids"] = [0] * 9
    model = KLUE_RE.model(encoder, tokenizer).eval()
    together = model.predict(**to_tensors(KLUE_RE.collate(features[::-1], tokenizer.pad_token_id)))[::-1]
    alone = [model.predict(**to_tensors(KLUE_RE.collate([f], tokenizer.pad_token_id)))[0] for f in features]
    np.testing.assert_allclose(np.array(together), np.array(alone), atol=1e-5)


def test_training_lowers_the_loss_and_learns_the_relations(examples: list[Example], tiny_re) -> None:
    examples = examples[1:]
    encoder, tokenizer = tiny_re()
    features = featurize_re(examples, tokenizer, 64, True)
    seed = seed_everything(1, "klue-re")
    model = KLUE_RE.model(encoder, tokenizer)
    settings = Hyperparameters(lr=2e-3, epochs=150, batch_size=3)
    losses = train(KLUE_RE, model, features, settings, seed, tokenizer.pad_token_id)
    raws = predict(KLUE_RE, model, features, tokenizer.pad_token_id)
    predictions = KLUE_RE.decode(examples, features, raws)
    rows = [Row(e.guid, e.gold, p.value, p.scores) for e, p in zip(examples, predictions, strict=True)]
    assert losses[-1] < losses[0] / 2
    assert KLUE_RE.score(rows)["micro_f1"] == 100


def test_all_real_sentences_keep_four_markers_and_equal_the_published_features(
    shared, klue_tokenizer, published_features
) -> None:
    klue_tokenizer.add_tokens(list(MARKERS), special_tokens=True)
    examples = read_re(find_files(shared("data/klue"), KLUE_RE.files).dev)
    features = featurize_re(examples, klue_tokenizer, 256, False)
    markers = set(klue_tokenizer.convert_tokens_to_ids(list(MARKERS)))
    assert len(features) == 7_765
    assert all(markers <= set(feature["input_ids"]) for feature in features)

    expected = {record["guid"]: record for record in published_features("klue-re")}
    unknown, compared = klue_tokenizer.unk_token_id, 0
    for example, feature in zip(examples, features, strict=True):
        if example.guid in expected:
            published = expected[example.guid]["input_ids"]
            pairs = zip(feature["input_ids"], published, strict=True)
            assert all(ours == theirs or theirs == unknown for ours, theirs in pairs), example.guid
            compared += 1
    assert compared == len(expected) > 0
