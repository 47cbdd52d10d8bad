"""KLUE-NER: tags to tokens and back again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from corpus.documents.errors import BadInput
from finetune.config import Hyperparameters
from finetune.data.files import find_file
from finetune.examples import IGNORED, Example, Row
from finetune.tasks.ner.alignment import collate
from finetune.tasks.ner.metrics import NER_TAGS
from finetune.tasks.ner.task import KLUE_NER, decode, featurize, read, write
from finetune.train.batched_prediction import predict, to_tensors
from finetune.train.trainer import seed_everything, train
from tests.finetune.conftest import certain
from tests.finetune.records import record_of

FILE = """## 컬럼명 : CHAR\tNE_TAG
## klue-ner-v1_dev_00000-sample\t<김하늘:PS>이 <서울:LC> 에서
김\tB-PS
하\tI-PS
늘\tI-PS
이\tO
 \tO
서\tB-LC
울\tI-LC
 \tO
에\tO
서\tO

## klue-ner-v1_dev_00001-sample\t<<레이:PS>>
<\tO
레\tB-PS
이\tI-PS
>\tO
"""


@pytest.fixture
def examples(tmp_path: Path) -> list[Example]:
    path = tmp_path / "ner.tsv"
    path.write_text(FILE, "utf-8")
    return read(path)


def texts_of(examples: list[Example]) -> list[str]:
    return [example.inputs["text"] for example in examples]


def round_trip(examples: list[Example], tokenizer, max_tokens: int = 64) -> list[list[str]]:
    features = featurize(examples, tokenizer, max_tokens, False)
    outside = len(NER_TAGS) - 1
    raws = [certain([outside if tag == IGNORED else tag for tag in feature["tags"]]) for feature in features]
    return [prediction.value for prediction in decode(examples, features, raws)]


def test_reading_drops_the_tags_of_spaces_and_keeps_literal_angle_brackets(examples: list[Example]) -> None:
    assert texts_of(examples) == ["김하늘이 서울 에서", "<레이>"]
    assert examples[0].gold == ["B-PS", "I-PS", "I-PS", "O", "B-LC", "I-LC", "O", "O"]
    assert examples[1].guid == "klue-ner-v1_dev_00001-sample"


WRONG = [("B-PS", "B-PERSON"), ("김\tB-PS", "김하\tB-PS"), ("김\tB-PS", "김\t\tB-PS"), ("김\t", "김 ")]


@pytest.mark.parametrize(("old", "new"), WRONG)
def test_a_wrong_line_is_named_with_its_sentence(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "ner.tsv"
    path.write_text(FILE.replace(old, new, 1), "utf-8")
    with pytest.raises(BadInput, match=r"ner.tsv, line 3, klue-ner-v1_dev_00000-sample: expected one character"):
        read(path)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("서\tB-LC\n울\n로\n", "klue-ner-v1_dev_00000: 2 of 3 characters have no tag"),
        (" \tO\n \tO\n", "line 2, klue-ner-v1_dev_00000: a sentence of spaces only"),
        ("서\n\n## klue-ner-v1_dev_00001\n울\tO\n", "klue-ner-v1_dev_00000: no character has a tag, as in 1 of 2"),
    ],
)
def test_a_sentence_without_all_its_tags_or_without_letters_is_refused(
    tmp_path: Path, lines: str, message: str
) -> None:
    path = tmp_path / "ner.tsv"
    path.write_text(f"## klue-ner-v1_dev_00000\t서울로\n{lines}", "utf-8")
    with pytest.raises(BadInput, match=message):
        read(path)


@pytest.mark.parametrize("unlabelled", ["김\n하\n \t\n서\n", "김\t\n하\t\n \t\n서\t\n"])
def test_a_test_file_has_no_gold_and_can_be_predicted(tmp_path: Path, unlabelled: str, tiny_encoder) -> None:
    path, target = tmp_path / "test.tsv", tmp_path / "predicted.tsv"
    path.write_text(f"## klue-ner-v1_test_00000-sample\t김하 서\n{unlabelled}", "utf-8")
    (example,) = read(path)
    assert (example.gold, example.inputs) == (None, {"text": "김하 서"})
    _, tokenizer = tiny_encoder(["김하서"])
    for task in (KLUE_NER, KLUE_NER.with_protocol("klue-baseline")):
        (feature,) = task.featurize([example], tokenizer, 64, False)
        (prediction,) = task.decode([example], [feature], [certain([12, 0, 1, 2, 12])])
        assert prediction.value == ["B-PS", "I-PS", "B-LC"]
        assert record_of(task, example, [feature], 64)["labels"]["char_tags"] is None
    write(path, {example.guid: prediction.value}, target)
    assert read(target)[0].gold == ["B-PS", "I-PS", "B-LC"]


def test_predictions_are_written_in_the_official_layout(tmp_path: Path) -> None:
    source, target = tmp_path / "ner.tsv", tmp_path / "predicted.tsv"
    source.write_text(FILE, "utf-8")
    values = {example.guid: example.gold for example in read(source)}
    write(source, values, target)
    assert target.read_text("utf-8") == FILE
    values["klue-ner-v1_dev_00001-sample"] = ["B-OG", "I-OG", "I-OG", "O"]
    write(source, values, target)
    assert target.read_text("utf-8") == FILE.replace("<\tO\n레\tB-PS\n이\tI-PS", "<\tB-OG\n레\tI-OG\n이\tI-OG")


def test_gold_tags_survive_the_way_through_tokens(examples: list[Example], tiny_encoder) -> None:
    _, tokenizer = tiny_encoder(texts_of(examples))
    assert round_trip(examples, tokenizer) == [example.gold for example in examples]


def test_an_unknown_word_does_not_shift_the_tags_of_others(tiny_encoder) -> None:
    example = Example("0", ["O", "O", "B-LC", "I-LC", "O", "B-PS", "I-PS", "I-PS"], {"text": "뷁쀍 서울에 김하늘"})
    _, tokenizer = tiny_encoder(["서울에 김하늘"])
    assert round_trip([example], tokenizer) == [example.gold]


def test_a_character_that_the_tokenizer_drops_keeps_a_tag(tiny_encoder) -> None:
    example = Example("0", ["B-LC", "I-LC", "I-LC", "O"], {"text": "서\u200b울에"})
    _, tokenizer = tiny_encoder(["서울에"])
    assert round_trip([example], tokenizer) == [example.gold]


def test_a_word_of_dropped_characters_has_no_entity_and_its_sentence_a_feature(tiny_encoder) -> None:
    texts = {"\u200b": ["B-LC"], "\u200b 서울": ["O", "B-LC", "I-LC"], "서울 \u200b": ["B-LC", "I-LC", "O"]}
    examples = [Example(text, gold, {"text": text}) for text, gold in texts.items()]
    _, tokenizer = tiny_encoder(["서울에"])
    assert round_trip(examples, tokenizer) == [["O"], *list(texts.values())[1:]]
    assert [len(featurize([example], tokenizer, 64, False)) for example in examples] == [1, 1, 1]
    assert round_trip(examples[:1], tokenizer) == [["O"]]


def test_a_dropped_first_character_continues_with_nothing_before_it(tiny_encoder) -> None:
    texts = {"\u200b서": ["O", "B-LC"], "서울": ["B-LC", "I-LC"], "\u200b울": ["O", "B-LC"], "": []}
    examples = [Example(text, gold, {"text": text}) for text, gold in texts.items()]
    _, tokenizer = tiny_encoder(["서울에"])
    assert round_trip(examples, tokenizer) == list(texts.values())
    assert round_trip(examples[::-1], tokenizer) == list(texts.values())[::-1]


def byte_level() -> Tokenizer:
    """GPT-2's kind: no piece but bytes, except a space with the byte after it."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({c: i for i, c in enumerate([*alphabet, "Ġì"])}, [("Ġ", "ì")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def sentencepiece() -> Tokenizer:
    """XLM-R's kind: pieces begin with the space before them."""
    pieces = [("<unk>", 0.0), *((piece, -1.0) for piece in ("▁", "▁서", *"김하늘이울에서<레>"))]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    return tokenizer


@pytest.mark.parametrize("build", [byte_level, sentencepiece])
def test_spaces_in_tokens_and_shared_characters_cost_no_entity(
    examples: list[Example], build: Callable[[], Tokenizer]
) -> None:
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=build(), cls_token="<s>", sep_token="</s>", pad_token="<p>")
    spans = tokenizer.backend_tokenizer.encode("김 서울").offsets
    assert any("김 서울"[start] == " " for start, _ in spans)  # or this would test nothing
    assert round_trip(examples, tokenizer) == [example.gold for example in examples]
    long = featurize(examples[:1], tokenizer, 5, False)
    assert len(long) > 1
    assert round_trip(examples, tokenizer, 5) == [example.gold for example in examples]


def test_an_entity_may_begin_after_a_token_of_space_alone() -> None:
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=byte_level(), cls_token="<s>", sep_token="</s>")
    assert tokenizer.backend_tokenizer.encode(" a서").offsets[0] == (0, 1)
    example = Example("0", ["B-LC", "I-LC", "B-PS"], {"text": " a서 울"})
    assert round_trip([example], tokenizer) == [example.gold]


def test_one_of_the_bytes_of_a_character_learns_and_decides(examples: list[Example]) -> None:
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=byte_level(), cls_token="<s>", sep_token="</s>")
    example = Example("0", ["B-LC", "I-LC"], {"text": "서울"})
    (feature,) = featurize([example], tokenizer, 64, False)
    assert feature["tags"] == [IGNORED, 2, IGNORED, IGNORED, 3, IGNORED, IGNORED, IGNORED]
    raw = certain([12, 2, 12, 0, 3, 12, 12, 12])
    assert decode([example], [feature], [raw])[0].value == ["B-LC", "I-LC"]


def test_a_sentence_longer_than_the_encoder_becomes_several_features(examples: list[Example], tiny_encoder) -> None:
    _, tokenizer = tiny_encoder(texts_of(examples))
    features = featurize(examples[:1], tokenizer, 5, False)
    assert [len(feature["input_ids"]) for feature in features] == [5, 5, 4]
    assert round_trip(examples, tokenizer, 5) == [example.gold for example in examples]
    record = record_of(KLUE_NER, examples[0], features, 5)
    assert [window["tags"] for window in record["windows"]][2] == [None, "O", "O", None]
    assert record["labels"] == {"char_tags": examples[0].gold}


def test_tables_count_entities_by_type() -> None:
    gold = ["B-PS", "I-PS", "O", "B-LC", "B-LC", *["B-OG"], *["I-OG"] * 5]
    predicted = ["B-PS", "I-PS", "O", "B-LC", "I-LC", *["B-OG"], *["I-OG"] * 5]
    tables = KLUE_NER.inspection.tables([Row("0", gold, predicted), Row("1", ["B-DT"], ["O"])])
    by_type = {row["type"]: [row[key] for key in ("gold", "predicted", "right")] for row in tables["entity types"]}
    assert by_type == {"PS": [1, 1, 1], "LC": [2, 1, 0], "OG": [1, 1, 1], "DT": [1, 0, 0], "TI": [0] * 3, "QT": [0] * 3}
    first, last = tables["entity types"][0], tables["entity types"][-1]
    assert (first["precision"], first["recall"], first["f1"]) == (100, 100, 100)
    assert (last["precision"], last["recall"], last["f1"]) == (None, None, None)


def test_special_tokens_and_padding_are_not_in_the_loss(examples: list[Example], tiny_encoder) -> None:
    _, tokenizer = tiny_encoder(texts_of(examples))
    batch = to_tensors(collate(featurize(examples, tokenizer, 64, True), tokenizer.pad_token_id))
    special = (batch["input_ids"] == tokenizer.cls_token_id) | (batch["input_ids"] == tokenizer.sep_token_id)
    assert ((batch["labels"] == IGNORED) == (special | (batch["attention_mask"] == 0))).all()


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_logits_depend_on_neither_batch_mates_nor_padding(examples: list[Example], tiny_encoder, kind: str) -> None:
    encoder, tokenizer = tiny_encoder(texts_of(examples), kind)
    features = featurize(examples, tokenizer, 64, False)
    net = KLUE_NER.model(encoder, tokenizer).eval().net

    def logits(batch) -> np.ndarray:
        batch.pop("labels")
        return net(**batch).logits.detach().numpy()

    together = logits(to_tensors(collate(features[::-1], tokenizer.pad_token_id)))[::-1]
    for row, feature in zip(together, features, strict=True):
        alone = logits(to_tensors(collate([feature], tokenizer.pad_token_id)))[0]
        np.testing.assert_allclose(row[: len(alone)], alone, atol=1e-5)


def test_training_lowers_the_loss_and_learns_the_entities(examples: list[Example], tiny_encoder) -> None:
    encoder, tokenizer = tiny_encoder(texts_of(examples))
    features = featurize(examples, tokenizer, 64, True)
    seed = seed_everything(1, "klue-ner")
    model = KLUE_NER.model(encoder, tokenizer)
    settings = Hyperparameters(lr=1e-2, epochs=40, batch_size=4)
    losses = train(KLUE_NER, model, features, settings, seed, tokenizer.pad_token_id).losses
    predictions = decode(examples, features, predict(KLUE_NER, model, features, tokenizer.pad_token_id))
    rows = [Row(e.guid, e.gold, p.value) for e, p in zip(examples, predictions, strict=True)]
    assert losses[-1] < losses[0] / 2
    assert KLUE_NER.score(rows)["entity_macro_f1"] == 100


@pytest.fixture(scope="module")
def dev(shared: Callable[[str], Path]) -> list[Example]:
    path = find_file(shared("data/klue"), KLUE_NER.files.dev)
    assert path is not None
    return read(path)


def test_real_gold_tags_survive_up_to_what_the_vocabulary_cannot_part(dev: list[Example], klue_tokenizer) -> None:
    tags = round_trip(dev, klue_tokenizer, 510)
    scores = KLUE_NER.score([Row(e.guid, e.gold, t) for e, t in zip(dev, tags, strict=True)])
    assert len(dev) == 5_000
    assert scores["entity_macro_f1"] >= 98.3
    assert scores["character_macro_f1"] >= 99.7


def test_inputs_and_golds_equal_the_published_ones(dev: list[Example], klue_tokenizer, published_features) -> None:
    expected = {record["guid"]: record for record in published_features("klue-ner")}
    examples = [example for example in dev if example.guid in expected]
    assert len(examples) == len(expected) > 0
    for example, feature in zip(examples, featurize(examples, klue_tokenizer, 510, False), strict=True):
        published = expected[example.guid]
        record = record_of(KLUE_NER, example, [feature], 510)
        assert record["input_ids"] == published["input_ids"]
        assert record["token_type_ids"] == published["token_type_ids"]
        assert record["labels"]["char_tags"] == published["labels"]["char_tags"]
        if klue_tokenizer.unk_token_id not in feature["input_ids"]:  # there the published labels are wrong
            assert record["labels"]["tags"][1:-1] == published["labels"]["tags"][1:-1]
