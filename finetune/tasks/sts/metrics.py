"""Scores of KLUE-STS: Pearson correlation, and F1 of "similar" with both sides made binary at 3 (KLUE paper 3.2).

Pearson is nan for a constant prediction; a similarity of exactly 3 counts as similar. Legend: ``N`` pairs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from finetune.examples import Row
from finetune.metrics import pearson

SIMILAR_FROM, MOST_SIMILAR = 3.0, 5.0


def score(rows: Sequence[Row]) -> dict[str, float]:
    """``pearsonr`` (-100..100 or nan) and ``f1`` (0..100) of real numbers."""
    return score_pairs(*numbers_of(rows))


def score_pairs(gold_N: NDArray[np.float64], predicted_N: NDArray[np.float64]) -> dict[str, float]:
    """``score`` of the numbers themselves."""
    is_gold_N, is_predicted_N = gold_N >= SIMILAR_FROM, predicted_N >= SIMILAR_FROM
    sides = int(is_gold_N.sum() + is_predicted_N.sum())
    f1 = 2 * int((is_gold_N & is_predicted_N).sum()) / sides if sides else 0.0
    return {"pearsonr": pearson(gold_N, predicted_N), "f1": 100 * f1}


def numbers_of(rows: Sequence[Row]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Golds and predictions."""
    return np.array([row.gold for row in rows], dtype=float), np.array([row.prediction for row in rows], dtype=float)
