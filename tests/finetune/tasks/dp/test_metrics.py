"""Attachment scores against scikit-learn, exact types, and tables in which every word counts once."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import f1_score

from finetune.examples import Row
from finetune.tasks.dp.metrics import macro_f1, score, tables

GOLD = {"heads": [3, 3, 0], "types": ["X_SBJ", "NP", "VP"]}


@pytest.fixture
def row() -> Row:
    """The first type is wrong, but within the published class of rare types; the second head is wrong."""
    return Row("a", GOLD, {"heads": [3, 0, 0], "types": ["X_OBJ", "NP", "VP"]})


def test_macro_f1_is_that_of_scikit_learn():
    for seed in range(20):
        gold, predicted = np.random.default_rng(seed).integers(-2, 3 + 2 * seed, size=(2, 30))
        expected = 100 * f1_score(gold, predicted, average="macro", zero_division=0)
        ids = np.concatenate([gold, predicted]) + 2
        sides = [np.bincount(found, minlength=80) for found in (ids[:30], ids[30:], ids[:30][gold == predicted])]
        assert macro_f1(np.concatenate(sides)) == pytest.approx(expected, abs=1e-9)


def test_exact_scores_keep_rare_types_apart(row):
    scores = score([row])
    assert scores["las_micro_f1"] == scores["uas_micro_f1"] == pytest.approx(200 / 3)
    assert scores["las_exact"] == pytest.approx(100 / 3)


def test_the_fifteen_frequent_types_are_classes_and_the_others_are_one():
    frequent, rare = ["VNP_MOD", "NP_CMP", "VP_SBJ"], ["VP_CMP", "VP_OBJ", "NP_SVJ"]  # around the limit, and the last
    types = [*frequent, *rare]
    for gold in types:
        right = {
            predicted: score([Row("a", {"heads": [0], "types": [gold]}, {"heads": [0], "types": [predicted]})])
            for predicted in types
        }
        counted = {predicted for predicted in types if right[predicted]["las_micro_f1"] == 100}
        assert counted == ({gold} if gold in frequent else set(rare))
        elsewhere = Row("a", {"heads": [2, 0], "types": [gold, "NP"]}, {"heads": [0, 0], "types": [gold, "NP"]})
        assert score([elsewhere])["las_micro_f1"] == 50  # the right type at the wrong head is wrong


def test_every_word_counts_once_in_each_table(row):
    found = tables([row, row])
    assert {name: sum(line["gold"] for line in lines) for name, lines in found.items()} == dict.fromkeys(found, 6)
    assert found["by relation type"][-1] == {
        "type": "X_SBJ", "gold": 2, "right heads": 2, "right heads and types": 0, "uas": 100.0, "las": 0.0,
    }  # fmt: skip


def test_a_prediction_of_another_length_is_named():
    with pytest.raises(ValueError, match="a: one head and one type expected for each of 3 words"):
        score([Row("a", GOLD, {"heads": [3, 0], "types": ["NP", "VP"]})])


def test_no_words_have_no_score():
    assert all(math.isnan(value) for value in score([]).values())
