"""KLUE-NER: tags to tokens and back again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from finetune.config import BadInput
from finetune.files import find_files
from finetune.metrics.ner import NER_TAGS
from finetune.padding import IGNORED
from finetune.predict import predict, to_tensors
from finetune.task import Example, Hyperparameters, Row
from finetune.tasks.klue_ner import KLUE_NER, collate_ner, decode_ner, featurize_ner, read_ner
from finetune.train import seed_everything, train

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
    return read_ner(path)


def texts_of(examples: list[Example]) -> list[str]:
    return [example.inputs["text"] for example in examples]


def round_trip(examples: list[Example], tokenizer, max_tokens: int = 64) -> list[list[str]]:
    features = featurize_ner(examples, tokenizer, max_tokens, False)
    outside = len(NER_TAGS) - 1
    raws = [np.array([outside if tag == IGNORED else tag for tag in feature["tags"]]) for feature in features]
    return [prediction.value for prediction in decode_ner(examples, features, raws)]


def test_reading_drops_the_tags_of_spaces_and_keeps_literal_angle_brackets(examples: list[Example]) -> None:
    assert texts_of(examples) == ["김하늘이 서울 에서", "<레이>"]
    assert examples[0].gold == ["B-PS", "I-PS", "I-PS", "O", "B-LC", "I-LC", "O", "O"]
    assert examples[1].guid == "klue-ner-v1_dev_00001-sample"


@pytest.mark.parametrize(("old", "new"), [("B-PS", "B-PERSON"), ("김\tB-PS", "김하\tB-PS"), ("김\tB-PS", "김")])
def test_a_wrong_line_is_named_with_its_sentence(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "ner.tsv"
    path.write_text(FILE.replace(old, new, 1), "utf-8")
    with pytest.raises(BadInput, match=r"ner.tsv, line 3, klue-ner-v1_dev_00000-sample: expected one character"):
        read_ner(path)


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


def test_a_sentence_longer_than_the_encoder_becomes_several_features(examples: list[Example], tiny_encoder) -> None:
    _, tokenizer = tiny_encoder(texts_of(examples))
    features = featurize_ner(examples[:1], tokenizer, 5, False)
    assert [len(feature["input_ids"]) for feature in features] == [5, 5, 4]
    assert round_trip(examples, tokenizer, 5) == [example.gold for example in examples]


def test_special_tokens_and_padding_are_not_in_the_loss(examples: list[Example], tiny_encoder) -> None:
    _, tokenizer = tiny_encoder(texts_of(examples))
    batch = to_tensors(collate_ner(featurize_ner(examples, tokenizer, 64, True), tokenizer.pad_token_id))
    special = (batch["input_ids"] == tokenizer.cls_token_id) | (batch["input_ids"] == tokenizer.sep_token_id)
    assert ((batch["labels"] == IGNORED) == (special | (batch["attention_mask"] == 0))).all()


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_logits_depend_on_neither_batch_mates_nor_padding(examples: list[Example], tiny_encoder, kind: str) -> None:
    encoder, tokenizer = tiny_encoder(texts_of(examples), kind)
    features = featurize_ner(examples, tokenizer, 64, False)
    net = KLUE_NER.model(encoder, tokenizer).eval().net

    def logits(batch) -> np.ndarray:
        batch.pop("labels")
        return net(**batch).logits.detach().numpy()

    together = logits(to_tensors(collate_ner(features[::-1], tokenizer.pad_token_id)))[::-1]
    for row, feature in zip(together, features, strict=True):
        alone = logits(to_tensors(collate_ner([feature], tokenizer.pad_token_id)))[0]
        np.testing.assert_allclose(row[: len(alone)], alone, atol=1e-5)


def test_training_lowers_the_loss_and_learns_the_entities(examples: list[Example], tiny_encoder) -> None:
    encoder, tokenizer = tiny_encoder(texts_of(examples))
    features = featurize_ner(examples, tokenizer, 64, True)
    seed = seed_everything(1, "klue-ner")
    model = KLUE_NER.model(encoder, tokenizer)
    settings = Hyperparameters(lr=1e-2, epochs=60, batch_size=4)
    losses = train(KLUE_NER, model, features, settings, seed, tokenizer.pad_token_id)
    predictions = decode_ner(examples, features, predict(KLUE_NER, model, features, tokenizer.pad_token_id))
    rows = [Row(e.guid, e.gold, p.value) for e, p in zip(examples, predictions, strict=True)]
    assert losses[-1] < losses[0] / 2
    assert KLUE_NER.score(rows)["entity_macro_f1"] == 100


def test_real_gold_tags_survive_up_to_what_the_vocabulary_cannot_part(shared, klue_tokenizer) -> None:
    examples = read_ner(find_files(shared("data/klue"), KLUE_NER.files).dev)
    tags = round_trip(examples, klue_tokenizer, 510)
    scores = KLUE_NER.score([Row(e.guid, e.gold, t) for e, t in zip(examples, tags, strict=True)])
    assert len(examples) == 5_000
    assert scores["entity_macro_f1"] >= 98.3
    assert scores["character_macro_f1"] >= 99.7


def test_inputs_and_golds_equal_the_published_ones(shared, klue_tokenizer, published_features) -> None:
    expected = {record["guid"]: record for record in published_features("klue-ner")}
    examples = [e for e in read_ner(find_files(shared("data/klue"), KLUE_NER.files).dev) if e.guid in expected]
    assert len(examples) == len(expected) > 0
    for example, feature in zip(examples, featurize_ner(examples, klue_tokenizer, 510, False), strict=True):
        published = expected[example.guid]
        assert feature["input_ids"] == published["input_ids"]
        assert example.gold == published["labels"]["char_tags"]
        if klue_tokenizer.unk_token_id not in feature["input_ids"]:  # there the published labels are wrong
            assert [NER_TAGS[tag] for tag in feature["tags"][1:-1]] == published["labels"]["tags"][1:-1]
