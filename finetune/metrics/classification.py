"""Scores of single-label classification: macro F1 for YNAT, accuracy for KLUE-NLI (paper 3.1.2, 3.3.2).

Macro F1 averages over the classes that occur in gold or prediction: a class that is only predicted counts with F1 0,
one that occurs on neither side does not count.
"""

from __future__ import annotations

from collections.abc import Sequence

from sklearn.metrics import accuracy_score, f1_score

from finetune.task import Row


def score_ynat(rows: Sequence[Row]) -> dict[str, float]:
    """``macro_f1``, 0..100, of label names."""
    gold, predicted = [row.gold for row in rows], [row.prediction for row in rows]
    return {"macro_f1": 100 * float(f1_score(gold, predicted, average="macro", zero_division=0))}


def score_nli(rows: Sequence[Row]) -> dict[str, float]:
    """``accuracy``, 0..100, of label names."""
    gold, predicted = [row.gold for row in rows], [row.prediction for row in rows]
    return {"accuracy": 100 * float(accuracy_score(gold, predicted))}
