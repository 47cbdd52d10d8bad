"""Numeric helpers that the metrics of several tasks share: counts by class, F1 columns, Pearson and Spearman.

NumPy only, no torch. Legend: ``N`` examples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

CORRELATIONS = ("pearsonr", "spearmanr")  # metrics from -100 to 100; all others are from 0 to 100
SHARES = ("accuracy", "exact_match", "exact_match_as_intended", "joint_goal_acc")  # of examples that are right


def figure(value: float | None) -> str:
    """Two decimals, or "undefined"."""
    return "undefined" if value is None else f"{value:.2f}"


def interval_text(interval: Sequence[float] | None, digits: int = 2) -> str:
    """``84.90 to 86.10``; a dash for None."""
    return "–" if interval is None else f"{interval[0]:.{digits}f} to {interval[1]:.{digits}f}"


def percent(part: int, total: int) -> float | None:
    """A share in 0..100; None if ``total`` is 0."""
    return 100 * part / total if total else None


def count_row(gold: int, predicted: int, right: int) -> dict[str, Any]:
    """Table columns: the counts, and precision, recall and F1 in 0..100, None where undefined."""
    return {
        "gold": gold, "predicted": predicted, "right": right,
        "precision": percent(right, predicted), "recall": percent(right, gold),
        "f1": percent(2 * right, gold + predicted),
    }  # fmt: skip


def count_sides(
    gold: NDArray[np.int64], predicted: NDArray[np.int64], owner: NDArray[np.int64], rows: int, classes: int
) -> NDArray[np.int64]:
    """Count for each row how often each class is gold, predicted, and both: (rows, 3 x classes).

    Args:
        gold, predicted: class of each decision.
        owner: the row that each decision belongs to.
    """
    is_right = gold == predicted
    places = [owner * classes + gold, owner * classes + predicted, (owner * classes + gold)[is_right]]
    return np.hstack([np.bincount(place, minlength=rows * classes).reshape(rows, classes) for place in places])


def softmax(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """Probabilities over the last axis, in double precision, so that unequal scores stay unequal."""
    p = np.exp(scores.astype(np.float64) - scores.max(axis=-1, keepdims=True))
    return np.asarray(p / p.sum(axis=-1, keepdims=True))


def pearson(x_N: NDArray[np.float64], y_N: NDArray[np.float64]) -> float:
    """Pearson correlation, -100..100; nan if either side is constant."""
    is_defined = len(x_N) > 1 and np.ptp(x_N) > 0 and np.ptp(y_N) > 0
    return 100 * float(np.corrcoef(x_N, y_N)[0, 1]) if is_defined else float("nan")


def spearman(x_N: NDArray[np.float64], y_N: NDArray[np.float64]) -> float:
    """Spearman correlation, -100..100: Pearson of the ranks."""
    return pearson(average_ranks(x_N), average_ranks(y_N))


def average_ranks(values_N: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rank of each value, 1 for the smallest; equal values share the mean of their ranks."""
    _, inverse_N, counts = np.unique(values_N, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[inverse_N]


def kappa(pairs: Sequence[tuple[Any, Any]], distance: Callable[[Any, Any], float]) -> float | None:
    """Cohen's kappa: 1 minus the mean distance in pairs over that in random pairs; None if the latter is 0."""
    firsts, seconds = (Counter(values).items() for values in zip(*pairs, strict=True)) if pairs else ((), ())
    random = sum(n * m * distance(one, other) for one, n in firsts for other, m in seconds)
    return 1 - sum(distance(*pair) for pair in pairs) * len(pairs) / random if random else None
