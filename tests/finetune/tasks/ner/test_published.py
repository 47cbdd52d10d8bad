"""KLUE-NER as published: its conversion, its way back to characters, and what its metrics count."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from seqeval.metrics import f1_score as seqeval_f1
from seqeval.scheme import IOB2
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from corpus.documents.errors import BadInput
from finetune.data.files import find_file, read_text
from finetune.examples import IGNORED, Example, Prediction, Row
from finetune.tasks.ner.metrics import NER_TAGS, OUTSIDE
from finetune.tasks.ner.published import spread_unknown
from finetune.tasks.ner.task import KLUE_NER, read
from tests.finetune.conftest import certain

TASK = KLUE_NER.with_protocol("klue-baseline")


def example_of(text: str, tags: str) -> Example:
    """Tags as letters with spaces: P, L, G begin PS, LC, OG, small letters continue them."""
    names = {"P": "B-PS", "p": "I-PS", "L": "B-LC", "l": "I-LC", "G": "B-OG", "g": "I-OG", ".": "O"}
    return Example("0", [names[tag] for tag in tags], {"text": text})


def round_trip(examples: list[Example], tokenizer, max_tokens: int = 64) -> list[Prediction]:
    features = TASK.featurize(examples, tokenizer, max_tokens, False)
    return TASK.decode(examples, features, [certain(feature["tags"]) for feature in features])


def produced(prediction: Prediction) -> list[str]:
    return prediction.value[: prediction.scores["characters"]]


@pytest.fixture(scope="module")
def dev(shared: Callable[[str], Path]) -> list[Example]:
    path = find_file(shared("data/klue"), TASK.files.dev)
    assert path is not None
    return read(path)


@pytest.fixture
def quirks(shared: Callable[[str], Path]) -> list[dict[str, Any]]:
    records = map(json.loads, read_text(shared("oracle/features_public.jsonl.zst")).splitlines())
    return [record for record in records if record.get("task") == "klue-ner" and "quirk" in record]


def test_every_published_oddity_is_met(quirks, dev: list[Example], klue_tokenizer) -> None:
    by_guid = {example.guid: example for example in dev}
    examples = []
    for record in quirks:
        if "guid" in record:
            examples.append(by_guid[record["guid"]])
        else:
            tags = zip(record["input"]["text"], record["input"]["char_tags_with_spaces"], strict=True)
            gold = [tag for character, tag in tags if character != " "]
            examples.append(Example("0", gold, {"text": record["input"]["text"]}))
    features = TASK.featurize(examples, klue_tokenizer, 510, False)
    predictions = TASK.decode(examples, features, [certain(feature["tags"]) for feature in features])
    spread = 0
    for record, feature, prediction in zip(quirks, features, predictions, strict=True):
        assert feature["input_ids"] == record["baseline"]["input_ids"]
        assert [NER_TAGS[tag] for tag in feature["tags"]] == record["baseline"]["tags"]
        if "char_tags_from_these_tags" in record["baseline"]:
            assert produced(prediction) == record["baseline"]["char_tags_from_these_tags"]
            spread += 1
    assert spread >= 20


def test_gold_labels_give_the_published_ceiling_of_entity_f1(dev: list[Example], klue_tokenizer) -> None:
    predictions = round_trip(dev, klue_tokenizer, 510)
    scores = TASK.score([Row(e.guid, e.gold, p.value, p.scores) for e, p in zip(dev, predictions, strict=True)])
    assert len(dev) == 5_000
    assert scores["entity_macro_f1"] == pytest.approx(94.08, abs=0.01)
    assert scores["character_macro_f1"] == pytest.approx(97.22, abs=0.01)
    pairs = list(zip(dev, map(produced, predictions), strict=True))
    assert sum(len(tags) < len(example.gold) for example, tags in pairs) == 88
    assert sum(tags != example.gold for example, tags in pairs) == 476


def test_after_a_word_that_ends_unknown_every_tag_comes_one_token_late(tiny_encoder) -> None:
    _, tokenizer = tiny_encoder(["서울에 김하늘"])
    example = example_of("뷁쀍 서울에 김하늘", "..Ll.Ppp")
    (feature,) = TASK.featurize([example], tokenizer, 64, False)
    assert [NER_TAGS[tag] for tag in feature["tags"][1:-1]] == ["O", *example.gold[2:]]  # the tokens' tags are right
    (prediction,) = round_trip([example], tokenizer)
    assert prediction.value == example_of("", "...Ll.Pp").gold
    assert prediction.scores["characters"] == 8


def test_all_tokens_of_a_word_with_an_unknown_part_have_its_first_tag(tiny_encoder) -> None:
    _, tokenizer = tiny_encoder(["서울,대에 김하늘"])
    (feature,) = TASK.featurize([example_of("서울,뷁쀍대에 김하늘", "Ll.Ggg.Ppp")], tokenizer, 64, False)
    names = [NER_TAGS[tag] for tag in feature["tags"]]
    assert names == ["O", *["B-LC"] * 4, "B-PS", "I-PS", "I-PS", "O"]


@pytest.mark.parametrize(
    ("word", "tokens", "expected"),
    [
        ("뷁쀍", ["?"], ([0, 0], [True, False], 0)),
        ("뷁쀍,서울", ["?", ",", "서울"], ([0, 0, 1, 1], [True, False, True, True], 2)),
        ("서울,뷁쀍", ["서울", ",", "?"], ([0, 1, 2, 2], [True, True, True, False], 2)),
        ("뷁藤가", ["?", "?", "가"], ([0, 0, 1], [True, True, True], 1)),
        ("가뷁쀍라", ["가", "?", "라"], ([0, 1, 1, 2], [True, True, False, True], 2)),
        ("뷁쀍뷁쀍마", ["?", "?", "마"], ([0, 0, 0, 0, 1], [True, True, False, False, True], 1)),
        ("가나뷁쀍마바", ["가나", "?", "마", "바"], ([0, 1, 1, 2, 2], [True, True, False, True, True], 3)),
        ("가뷁쀍뷁", ["가", "?", "?"], ([0, 1, 1, 1], [True, True, True, False], 1)),
        ("가뷁나", ["가", "?", "나"], ([0, 1, 2], [True, True, True], 2)),
        ("뷁\u200b쀍,서\u200b울", ["?", ",", "서울"], ([0, 0, 0, 1, 1, 1], [True, False, False, True, True, False], 2)),
    ],
)
def test_letters_of_a_word_with_an_unknown_part_read_these_tokens(
    word: str, tokens: list[str], expected: tuple[list[int], list[bool], int]
) -> None:
    assert spread_unknown(word, tokens, [token == "?" for token in tokens]) == expected


def test_a_dropped_character_shifts_the_tags_of_later_words(tiny_encoder) -> None:
    _, tokenizer = tiny_encoder(["서울에 김하늘"])
    example = example_of("서\u200b울에 김하늘", "Lll.Ppp")
    (feature,) = TASK.featurize([example], tokenizer, 64, False)
    assert [NER_TAGS[tag] for tag in feature["tags"][1:-1]] == ["B-LC", "I-LC", "I-LC", "O", "B-PS", "I-PS"]


def test_special_tokens_are_in_the_loss_and_padding_is_not(tiny_encoder) -> None:
    _, tokenizer = tiny_encoder(["서울에"])
    features = TASK.featurize([example_of("서울", "Ll"), example_of("서울에", "Ll.")], tokenizer, 64, True)
    labels = TASK.collate(features, tokenizer.pad_token_id)["labels"]
    assert labels.tolist() == [[OUTSIDE, 2, 3, OUTSIDE, IGNORED], [OUTSIDE, 2, 3, OUTSIDE, OUTSIDE]]


def test_a_long_sentence_loses_its_end_and_is_scored_without_it(tiny_encoder) -> None:
    _, tokenizer = tiny_encoder(["서울에 김하늘"])
    example = example_of("서울에 김하늘", "Ll.Ppp")
    (prediction,) = round_trip([example], tokenizer, 6)
    assert prediction.value == example_of("", "Ll.P..").gold
    assert prediction.scores == {"ends": ["O", "O"], "characters": 4}
    row = Row("0", example.gold, prediction.value, json.loads(json.dumps(prediction.scores)))
    assert TASK.score([row])["entity_macro_f1"] == 100  # the gold is cut, too: its last entity is one letter long
    assert TASK.inspection.tables([row])["characters left out"] == [{"sentences": 1, "characters": 2}]
    with pytest.raises(ValueError, match="'characters' is -1, of 6"):
        TASK.score([row._replace(scores={"ends": ["O", "O"], "characters": -1})])


def test_an_entity_at_the_end_of_the_sentence_survives(tiny_encoder) -> None:
    _, tokenizer = tiny_encoder(["서울에 김하늘<>"])
    examples = [example_of("서울에 김하늘", "Ll.Ppp"), example_of("<하늘>", ".Gg.")]
    assert [prediction.value for prediction in round_trip(examples, tokenizer)] == [e.gold for e in examples]


def test_predictions_for_special_tokens_are_scored_like_characters() -> None:
    gold, predicted = [["O", "B-PS", "I-PS"], ["B-LC", "O"]], [["O", "B-PS", "I-PS"], ["I-LC", "O"]]
    ends = [["B-PS", "O"], ["B-LC", "B-OG"]]
    rows = [
        Row(str(i), g, p, {"ends": e, "characters": len(g)})
        for i, (g, p, e) in enumerate(zip(gold, predicted, ends, strict=True))
    ]
    flat_gold = [tag for g in gold for tag in ["O", *g, "O"]]
    flat = [tag for p, (first, last) in zip(predicted, ends, strict=True) for tag in [first, *p, last]]
    expected = seqeval_f1([flat_gold], [flat], mode="strict", scheme=IOB2, average="macro")
    scores = TASK.score(rows)
    assert scores["entity_macro_f1"] == pytest.approx(100 * expected)
    without = TASK.score([row._replace(scores=None) for row in rows])
    assert scores["character_macro_f1"] == without["character_macro_f1"]
    assert scores["character_macro_f1_with_specials"] < without["character_macro_f1_with_specials"]


def sentencepiece() -> PreTrainedTokenizerFast:
    """XLM-R's kind: NFKC, and pieces that begin with the space before them."""
    pieces = [("<unk>", 0.0), ("▁", -1.0), ("▁서울", -1.0), *((letter, -2.0) for letter in "(주)서울에김하늘")]
    backend = Tokenizer(models.Unigram(pieces, unk_id=0))
    backend.normalizer = normalizers.NFKC()
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="<unk>", cls_token="<s>", sep_token="</s>", pad_token="<p>"
    )


def test_the_space_that_sentencepiece_puts_before_words_is_no_character() -> None:
    tokenizer, example = sentencepiece(), example_of("서울에 김하늘", "Ll.Ppp")
    (feature,) = TASK.featurize([example], tokenizer, 64, False)
    assert tokenizer.convert_ids_to_tokens(feature["input_ids"])[1:-1] == ["▁서울", "에", "▁", "김", "하", "늘"]
    assert [NER_TAGS[tag] for tag in feature["tags"][1:-1]] == ["B-LC", "O", "O", "B-PS", "I-PS", "I-PS"]
    assert round_trip([example], tokenizer)[0].value == example.gold


def test_where_tokens_are_longer_than_the_text_neither_tags_nor_characters_run_out() -> None:
    tokenizer, examples = sentencepiece(), [example_of("서울 ㈜", ".Gg"), example_of("김", "P")]
    first, second = TASK.featurize(examples, tokenizer, 64, False)
    assert tokenizer.convert_ids_to_tokens(first["input_ids"])[1:-1] == ["▁서울", "▁", "(", "주", ")"]
    assert [NER_TAGS[tag] for tag in first["tags"][1:-1]] == ["O", "O", "I-OG", "I-OG", "I-OG"]
    raws = [certain([12, 2, 12, 0, 1, 1, 12]), certain([12, 12, 0, 12])]
    predictions = TASK.decode(examples, [first, second], raws)
    assert [prediction.value for prediction in predictions] == [["B-LC", "I-LC", "B-PS"], ["B-PS"]]


def test_tokenizers_without_a_published_rule_are_refused() -> None:
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE({"서": 0}, [])), unk_token="서")
    with pytest.raises(BadInput, match="klue-baseline has no rule for BPE tokenizers"):
        TASK.featurize([example_of("서", "L")], tokenizer, 64, False)


def test_table_36_is_shown_with_the_character_f1_that_the_published_code_prints() -> None:
    published = KLUE_NER.with_protocol("klue-baseline")
    assert KLUE_NER.metrics == ("entity_macro_f1", "character_macro_f1")
    assert published.metrics == ("entity_macro_f1", "character_macro_f1_with_specials")
    assert published.select_by == "character_macro_f1_with_specials"
    assert [list(row.values()) for row in published.published.dev_scores.values()] == [
        list(row.values()) for row in KLUE_NER.published.dev_scores.values()
    ]
