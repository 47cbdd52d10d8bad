"""Rules of the metrics that the published values do not reach, and the speed of entity F1."""

from __future__ import annotations

import math
import random
from statistics import correlation

import pytest
from seqeval.metrics import f1_score as seqeval_f1
from seqeval.scheme import IOB2
from sklearn.metrics import f1_score

from finetune.examples import Row
from finetune.tasks import labels
from finetune.tasks.mrc import metrics as mrc
from finetune.tasks.ner import metrics as ner
from finetune.tasks.re import metrics as re
from finetune.tasks.sts import task as sts


def noisy_sentences(count: int, length: int, seed: int) -> list[Row]:
    rng = random.Random(seed)
    rows = []
    for _ in range(count):
        gold = [rng.choice(ner.NER_TAGS) for _ in range(length)]
        rows.append(Row("", gold, [tag if rng.random() < 0.8 else rng.choice(ner.NER_TAGS) for tag in gold]))
    return rows


def test_entity_f1_equals_strict_seqeval_sentence_by_sentence() -> None:
    rows = noisy_sentences(60, 12, seed=3)
    gold, predicted = [row.gold for row in rows], [row.prediction for row in rows]
    expected = seqeval_f1(gold, predicted, mode="strict", scheme=IOB2, average="macro")
    assert ner.score(rows)["entity_macro_f1"] == pytest.approx(100 * expected)


def test_entities_do_not_run_into_the_next_sentence() -> None:
    rows = [Row("", ["O", "B-PS"], ["O", "B-PS"]), Row("", ["I-PS", "O"], ["O", "O"])]
    assert ner.score(rows)["entity_macro_f1"] == 100


def test_sentences_of_different_length_on_the_two_sides_are_refused() -> None:
    with pytest.raises(ValueError, match="as many predicted tags"):
        ner.score([Row("klue-ner-v1_dev_00000", ["O", "O"], ["O"])])


@pytest.mark.parametrize(
    "pairs", [[(1.0, 3.0), (2.0, 4.0)], [(4.0, 2.5), (3.0, 3.5), (3.5, 2.5)], [(0.0, 5.0), (5.0, 0.0)]]
)
def test_pearson_is_that_of_the_standard_library(pairs: list[tuple[float, float]]) -> None:
    """Also of two pairs, and where one side spans exactly one point."""
    found = sts.score([Row("", *pair) for pair in pairs])["pearsonr"]
    assert found == pytest.approx(100 * correlation(*zip(*pairs, strict=True)))


def test_pairs_of_which_none_is_similar_have_f1_0() -> None:
    assert sts.score([Row("", 1.0, 2.9), Row("", 2.9, 1.0)])["f1"] == 0


def test_a_class_on_neither_side_is_a_line_of_zeros() -> None:
    lines = labels.class_rows([Row("", "정치", "경제")], ["정치", "경제", "세계"])
    assert lines[2] == {"class": "세계"} | dict.fromkeys(("gold", "predicted", "right", "precision", "recall", "f1"), 0)
    assert [(line["precision"], line["recall"], line["f1"]) for line in lines] == [(0, 0, 0)] * 3


def test_values_without_a_definition_are_nan() -> None:
    assert math.isnan(sts.score([Row("", 1.0, 2.0), Row("", 4.0, 2.0)])["pearsonr"])
    assert math.isnan(ner.score([Row("", ["O"], ["O"])])["entity_macro_f1"])
    assert math.isnan(re.score([Row("", "per:title", "per:title")])["auprc"])


def test_auprc_leaves_out_relations_without_a_gold_example() -> None:
    certain = [0.0] * 29 + [1.0]
    assert re.score(
        [Row("", "per:title", "per:title", certain), Row("", "no_relation", "no_relation", certain[::-1])]
    ) == {
        "micro_f1": 100,
        "auprc": 100,
    }


def test_the_best_of_several_answers_counts() -> None:
    assert mrc.score_question({"answers": ["세종대왕", "세종"]}, "세종") == (1.0, 1.0)


def test_no_answer_is_right_only_where_there_is_none() -> None:
    assert mrc.score_question({"answers": []}, "") == (1.0, 1.0)
    assert mrc.score_question({"answers": []}, "세종") == (0.0, 0.0)
    assert mrc.score_question({"answers": ["세종"]}, "") == (0.0, 0.0)


def test_tags_of_special_tokens_count_only_where_the_name_says_so() -> None:
    """The published pipeline scores [CLS] and [SEP] too, and only characters before the cut."""
    rows = [
        Row("0", ["B-PS", "I-PS", "O", "B-LC"], ["B-PS", "O", "O", "O"], {"characters": 3, "ends": ["O", "B-QT"]}),
        Row("1", ["O", "B-TI"], ["B-TI", "B-TI"], {"characters": 2, "ends": ["B-DT", "O"]}),
    ]
    cut = [Row(guid, gold[: scores["characters"]], found[: scores["characters"]]) for guid, gold, found, scores in rows]
    found, plain = ner.score(rows), ner.score(cut)
    assert found["character_macro_f1"] == plain["character_macro_f1"]
    assert found["character_macro_f1_no_o"] == plain["character_macro_f1_no_o"]
    gold = ["O", "B-PS", "I-PS", "O", "O", "O", "O", "B-TI", "O"]
    predicted = ["O", "B-PS", "O", "O", "B-QT", "B-DT", "B-TI", "B-TI", "O"]
    with_specials = f1_score(gold, predicted, labels=ner.NER_TAGS, average="macro", zero_division=1.0)
    assert found["character_macro_f1_with_specials"] == pytest.approx(100 * with_specials)
