"""Scores of KLUE-RE against those of scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import auc, f1_score, precision_recall_curve

from finetune.examples import Row
from finetune.tasks.re.metrics import RE_LABELS, score, tables


def noisy_rows(count: int) -> list[Row]:
    """Three classes with scores of one digit, so that many are equal; the other classes have no gold."""
    generator = np.random.default_rng(3)
    rows = []
    for _ in range(count):
        scores = generator.random(30).round(1).tolist()
        gold, predicted = (RE_LABELS[id_] for id_ in generator.integers(3, size=2))
        rows.append(Row("", gold, predicted, scores))
    return rows


def test_scores_and_tables_equal_those_of_scikit_learn() -> None:
    rows = noisy_rows(200)
    gold, predicted = [row.gold for row in rows], [row.prediction for row in rows]
    curves = []
    for id_, label in enumerate(RE_LABELS[:3]):
        given = [name == label for name in gold], [row.scores[id_] for row in rows]
        precision, recall, _ = precision_recall_curve(*given)
        curves.append(100 * auc(recall, precision))
    micro = f1_score(gold, predicted, labels=list(RE_LABELS[1:]), average="micro", zero_division=0)
    assert score(rows) == pytest.approx({"micro_f1": 100 * micro, "auprc": np.mean(curves)})
    lines = tables(rows)["classes"]
    assert [line["class"] for line in lines] == list(RE_LABELS)
    assert [line["auprc"] for line in lines[:4]] == [*map(pytest.approx, curves), None]
    assert sum(line["gold"] for line in lines) == sum(line["predicted"] for line in lines) == 200


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (Row("", "per:boss", "per:title"), "no relation is named 'per:boss'"),
        (Row("", "per:title", "per:title", [0.5] * 29), "30 finite numbers"),
        (Row("", "per:title", "per:title", [float("nan")] * 30), "30 finite numbers"),
    ],
)
def test_rows_that_cannot_be_scored_are_refused(row: Row, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        score([row])


@pytest.mark.parametrize("seed", range(12))
def test_areas_of_few_rows_equal_those_of_scikit_learn(seed: int) -> None:
    """With single rows above the first gold row, and equal scores."""
    generator = np.random.default_rng(seed)
    is_gold = np.append(generator.random(1 + seed % 4) < 0.5, True)
    values = generator.integers(4, size=len(is_gold)) / 4
    rows = [
        Row("", RE_LABELS[29 if gold else 0], RE_LABELS[0], [1.0 - value, *[0.0] * 28, value])
        for gold, value in zip(is_gold.tolist(), values.tolist(), strict=True)
    ]
    precision, recall, _ = precision_recall_curve(is_gold, values)
    line = tables(rows)["classes"][29]
    assert line["auprc"] == pytest.approx(100 * auc(recall, precision))


def test_without_relations_or_without_all_scores_there_is_nothing_to_score() -> None:
    none = [Row("", RE_LABELS[0], RE_LABELS[0], [1 / 30] * 30), Row("", RE_LABELS[0], RE_LABELS[0])]
    assert score(none) == pytest.approx({"micro_f1": 0, "auprc": np.nan}, nan_ok=True)
