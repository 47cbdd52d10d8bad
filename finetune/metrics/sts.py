"""Scores of KLUE-STS: Pearson correlation, and F1 of "similar" (paper 3.2.2).

For F1 both sides are made binary at 3 (3 itself is similar); predictions are not clipped to 0..5. A constant
prediction has no Pearson correlation: the value is nan.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.metrics import f1_score

from finetune.task import Row

SIMILAR_FROM = 3.0


def score(rows: Sequence[Row]) -> dict[str, float]:
    """``pearsonr`` (-100..100 or nan) and ``f1`` (0..100) of real numbers."""
    gold = np.array([row.gold for row in rows], dtype=float)
    predicted = np.array([row.prediction for row in rows], dtype=float)
    f1 = f1_score(gold >= SIMILAR_FROM, predicted >= SIMILAR_FROM, zero_division=0)
    return {"pearsonr": 100 * _pearson(gold, predicted), "f1": 100 * float(f1)}


def _pearson(x: np.ndarray, y: np.ndarray) -> float:
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    return float(np.corrcoef(x, y)[0, 1])
