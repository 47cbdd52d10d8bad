"""KLUE-RE: markers around two spans, whatever their position."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, pre_tokenizers, processors
from tokenizers.models import BPE, Unigram
from transformers import PreTrainedTokenizerFast

from corpus.documents.errors import BadInput
from finetune.config import Hyperparameters
from finetune.data.files import find_file
from finetune.examples import Example, Row
from finetune.tasks.re.markers import MARKERS, featurize, keep_markers, mark_entities
from finetune.tasks.re.task import KLUE_RE, read
from finetune.train.batched_prediction import predict, to_tensors
from finetune.train.trainer import seed_everything, train
from tests.finetune.conftest import build_wordpiece

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
    return read(write(tmp_path, [RECORD, title, founded]))


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
    ids = list(range(100, 161))
    kept = keep_markers(ids, [ids[position] for position in positions], room)
    assert len(kept) == min(room, 61)
    assert set(positions) <= set(kept)
    assert kept == sorted(set(kept))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"label": "per:boss"}, "'label' is 'per:boss'"),
        ({"subject_entity": None}, "'subject_entity' should be an object"),
        ({"object_entity": {"start_idx": 5, "end_idx": 99}}, "spans characters 5 to 99"),
        (
            {"object_entity": {"word": "행장", "start_idx": 5, "end_idx": 6}},
            "is '행장', but its characters are '한빛'",
        ),
        ({"sentence": "김하늘은 한빛은행의 <obj>행장이다"}, "'sentence' holds '<obj>', which marks entities"),
    ],
)
def test_a_wrong_record_is_named_with_its_field(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput, match=f"klue-re-v1_dev_00000: .*{says}"):
        read(write(tmp_path, [{**RECORD, **change}]))


@pytest.fixture
def tiny_re(tiny_encoder):
    def build(kind: str = "bert"):
        encoder, tokenizer = tiny_encoder([f"{SENTENCE}().", "푸른들은 1987년에 섰다"], kind)
        tokenizer.add_tokens(list(MARKERS), special_tokens=True)
        return encoder, tokenizer

    return build


def test_a_particle_behind_a_marker_stays_a_continuation(examples: list[Example], tiny_re) -> None:
    _, tokenizer = tiny_re()
    tokens = tokenizer.convert_ids_to_tokens(featurize(examples[:1], tokenizer, 64, False)[0]["input_ids"])
    assert tokens[:8] == ["[CLS]", "<subj>", "김", "##하", "##늘", "</subj>", "##은", "<obj>"]


def sentencepiece() -> PreTrainedTokenizerFast:
    pieces = ["<pad>", "<unk>", "<s>", "</s>", "▁", *f"{SENTENCE}().", *(f"▁{character}" for character in SENTENCE)]
    tokenizer = Tokenizer(Unigram([(piece, -5.0) for piece in dict.fromkeys(pieces)], unk_id=1))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace()
    return finish(tokenizer)


def byte_level() -> PreTrainedTokenizerFast:
    pieces = ["<pad>", "<unk>", "<s>", "</s>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = Tokenizer(BPE({piece: id_ for id_, piece in enumerate(pieces)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return finish(tokenizer)


def finish(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 3), ("<s>", 2), add_prefix_space=False)
    roles = {"pad_token": "<pad>", "unk_token": "<unk>", "cls_token": "<s>", "sep_token": "</s>"}
    whole = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_input_names=["input_ids", "attention_mask"], **roles
    )
    whole.add_tokens(list(MARKERS), special_tokens=True)
    return whole


@pytest.mark.parametrize("protocol", ["malmoi", "klue-baseline"])
@pytest.mark.parametrize("kind", ["wordpiece", "sentencepiece", "byte-level"])
def test_any_tokenizer_keeps_text_markers_and_its_own_layout(kind: str, protocol: str, tiny_re) -> None:
    tokenizer = {"wordpiece": lambda: tiny_re()[1], "sentencepiece": sentencepiece, "byte-level": byte_level}[kind]()
    examples = [
        Example("equal", "org:members", {"sentence": SENTENCE, "subject": (5, 9), "object": (5, 9)}),
        Example("at the end", "org:members", {"sentence": SENTENCE, "subject": (0, 3), "object": (11, 15)}),
        Example("beside", "org:members", {"sentence": "김하늘(한빛).", "subject": (0, 3), "object": (4, 6)}),
    ]
    for example, feature in zip(
        examples, KLUE_RE.with_protocol(protocol).featurize(examples, tokenizer, 128, False), strict=True
    ):
        ids, (first, last) = feature["input_ids"], tokenizer("", return_attention_mask=False)["input_ids"]
        assert (ids[0], ids[-1]) == (first, last)
        assert sorted(id_ for id_ in ids if id_ in tokenizer.convert_tokens_to_ids(list(MARKERS))) == sorted(
            tokenizer.convert_tokens_to_ids(list(MARKERS))
        )
        text = tokenizer.decode(ids, skip_special_tokens=True)
        assert text.replace(" ", "").replace("#", "") == example.inputs["sentence"].replace(" ", "")
        assert feature["token_type_ids"] == [0] * len(ids)


def test_sentencepiece_marks_no_word_start_behind_an_end_marker(examples: list[Example]) -> None:
    tokenizer = sentencepiece()
    tokens = tokenizer.convert_ids_to_tokens(featurize(examples[:1], tokenizer, 64, False)[0]["input_ids"])
    assert tokens[tokens.index("</subj>") + 1] == "은"
    assert tokens[tokens.index("</obj>") + 1] == "의"


@pytest.mark.parametrize("protocol", ["malmoi", "klue-baseline"])
def test_a_particle_without_a_continuation_piece_is_unknown_only_as_published(
    protocol: str, examples: list[Example]
) -> None:
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *SENTENCE.replace(" ", ""), "##하", "##늘"]
    tokenizer = build_wordpiece(dict.fromkeys(pieces))
    tokenizer.add_tokens(list(MARKERS), special_tokens=True)
    (feature,) = KLUE_RE.with_protocol(protocol).featurize(examples[:1], tokenizer, 64, False)
    tokens = tokenizer.convert_ids_to_tokens(feature["input_ids"])
    assert tokens[tokens.index("</subj>") + 1] == {"malmoi": "은", "klue-baseline": "[UNK]"}[protocol]


def test_a_file_without_labels_gives_features_without_labels(tmp_path: Path, tiny_re) -> None:
    unlabelled = {key: value for key, value in RECORD.items() if key != "label"}
    _, tokenizer = tiny_re()
    examples = read(write(tmp_path, [unlabelled]))
    assert [example.gold for example in examples] == [None]
    batch = KLUE_RE.collate(featurize(examples, tokenizer, 64, False), 0)
    assert sorted(batch) == ["attention_mask", "input_ids", "token_type_ids"]
    with pytest.raises(BadInput, match="no 'label', which other records have"):
        read(write(tmp_path, [RECORD, unlabelled]))


def test_predictions_are_written_as_an_official_file(tmp_path: Path, examples: list[Example]) -> None:
    official, target = tmp_path / "re.json", tmp_path / "predicted.json"
    values = {example.guid: "per:title" for example in examples}
    KLUE_RE.write(official, values, target)
    assert [example.gold for example in read(target)] == ["per:title"] * 3
    assert [example.inputs for example in read(target)] == [example.inputs for example in examples]


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_scores_depend_on_neither_batch_mates_nor_padding(examples: list[Example], tiny_re, kind: str) -> None:
    encoder, tokenizer = tiny_re(kind)
    features = featurize(examples, tokenizer, 64, False)
    features[0]["input_ids"] = features[0]["input_ids"][:9]
    features[0]["token_type_ids"] = [0] * 9
    model = KLUE_RE.model(encoder, tokenizer).eval()
    together = model.predict(**to_tensors(KLUE_RE.collate(features[::-1], tokenizer.pad_token_id)))[::-1]
    alone = [model.predict(**to_tensors(KLUE_RE.collate([f], tokenizer.pad_token_id)))[0] for f in features]
    np.testing.assert_allclose(np.array(together), np.array(alone), atol=1e-5)


def test_training_lowers_the_loss_and_learns_the_relations(examples: list[Example], tiny_re) -> None:
    examples = examples[1:]
    encoder, tokenizer = tiny_re()
    features = featurize(examples, tokenizer, 64, True)
    seed = seed_everything(1, "klue-re")
    model = KLUE_RE.model(encoder, tokenizer)
    settings = Hyperparameters(lr=1e-2, epochs=30, batch_size=3)
    losses = train(KLUE_RE, model, features, settings, seed, tokenizer.pad_token_id).losses
    raws = predict(KLUE_RE, model, features, tokenizer.pad_token_id)
    predictions = KLUE_RE.decode(examples, features, raws)
    rows = [Row(e.guid, e.gold, p.value, p.scores) for e, p in zip(examples, predictions, strict=True)]
    assert losses[-1] < losses[0] / 2
    assert KLUE_RE.score(rows)["micro_f1"] == 100


@pytest.fixture
def marking_tokenizer(klue_tokenizer):
    klue_tokenizer.add_tokens(list(MARKERS), special_tokens=True)
    return klue_tokenizer


def test_all_real_sentences_keep_four_markers_however_short_the_input(shared, marking_tokenizer) -> None:
    examples = read(find_file(shared("data/klue"), KLUE_RE.files.dev))
    markers = set(marking_tokenizer.convert_tokens_to_ids(list(MARKERS)))
    features = featurize(examples, marking_tokenizer, 256, False)
    assert len(features) == 7_765
    assert all(markers <= set(feature["input_ids"]) for feature in features)

    long = [examples[feature["example"]] for feature in features if len(feature["input_ids"]) > 64]
    shortened = featurize(long, marking_tokenizer, 64, False)
    assert len(long) > 1_000
    for feature in shortened:
        assert len(feature["input_ids"]) == len(feature["token_type_ids"]) == 64
        assert sum(id_ in markers for id_ in feature["input_ids"]) == 4


def test_features_are_the_published_ones_except_for_tokens_made_unknown(
    shared, marking_tokenizer, published_features
) -> None:
    expected = {record["guid"]: record["input_ids"] for record in published_features("klue-re")}
    found = KLUE_RE.read(find_file(shared("data/klue"), KLUE_RE.files.dev))
    examples = [example for example in found if example.guid in expected]
    unknown = marking_tokenizer.unk_token_id
    assert len(examples) == len(expected) > 0
    for example, feature in zip(examples, featurize(examples, marking_tokenizer, 256, False), strict=True):
        pairs = zip(feature["input_ids"], expected[example.guid], strict=True)
        assert all(ours == theirs or theirs == unknown for ours, theirs in pairs), example.guid
