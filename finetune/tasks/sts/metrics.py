"""Scores of KLUE-STS: Pearson correlation, and F1 of "similar" (paper 3.2.2).

For F1 both sides are made binary at 3 (3 itself is similar); predictions are not clipped to 0..5. A constant
prediction has no Pearson correlation: the value is nan. Legend: ``N`` pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finetune.task import Row

SIMILAR_FROM = 3.0
MOST_SIMILAR = 5.0


def score(rows: Sequence[Row]) -> dict[str, float]:
    """``pearsonr`` (-100..100 or nan) and ``f1`` (0..100) of real numbers."""
    gold_N, predicted_N = _numbers(rows)
    is_gold_N, is_predicted_N = gold_N >= SIMILAR_FROM, predicted_N >= SIMILAR_FROM
    sides = int(is_gold_N.sum() + is_predicted_N.sum())
    f1 = 2 * int((is_gold_N & is_predicted_N).sum()) / sides if sides else 0.0
    return {"pearsonr": 100 * _pearson(gold_N, predicted_N), "f1": 100 * f1}


def _numbers(rows: Sequence[Row]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return np.array([row.gold for row in rows], dtype=float), np.array([row.prediction for row in rows], dtype=float)


def _pearson(x_N: NDArray[np.float64], y_N: NDArray[np.float64]) -> float:
    if len(x_N) < 2 or np.ptp(x_N) == 0 or np.ptp(y_N) == 0:
        return float("nan")
    return float(np.corrcoef(x_N, y_N)[0, 1])


def tables(rows: Sequence[Row]) -> dict[str, list[dict[str, Any]]]:
    """The table "gold similarity": for each band of gold scores that occurs (0-1 … 4-5, the upper end with the next
    band, 5 with the last) its pairs, and the mean and root mean square of prediction minus gold."""
    gold_N, predicted_N = _numbers(rows)
    band_N = np.clip(gold_N.astype(int), 0, int(MOST_SIMILAR) - 1)
    lines = []
    for band in np.unique(band_N).tolist():
        errors = (predicted_N - gold_N)[band_N == band]
        lines.append(
            {
                "gold": f"{band}-{band + 1}",
                "n": len(errors),
                "mean error": float(errors.mean()),
                "rmse": float(np.sqrt(np.square(errors).mean())),
            }
        )
    return {"gold similarity": lines}
