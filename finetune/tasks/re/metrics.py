"""Scores of KLUE-RE: micro F1 without ``no_relation``, and the area under the precision-recall curve (paper 3.5.2).

AUPRC is the trapezoid area under the points of the curve, averaged over the classes including ``no_relation``, as in
paper and published code. A class without gold examples (none in the official dev set) has no curve and is left out; the
published code gives nan. Legend: ``N`` rows, ``K`` classes, ``P`` gold rows of a class, ``T`` distinct scores of those.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finetune.examples import Row, Table
from finetune.task_names import klue_facts
from finetune.tasks.labels import class_rows, count_classes

RE_LABELS = tuple(klue_facts("klue-re")["labels"])
NO_RELATION = RE_LABELS[0]


def score(rows: Sequence[Row]) -> dict[str, float]:
    """``micro_f1`` and ``auprc``, 0..100 (``auprc`` is nan if rows have no ``scores``), of label names; ``scores`` of a
    row are 30 numbers in the order of ``RE_LABELS``, by which rows are ranked. ``ValueError`` for anything else."""
    counts = count_classes(rows)
    if unknown := counts.keys() - set(RE_LABELS):
        raise ValueError(f"no relation is named {min(map(str, unknown))!r}")
    relations = [count for name, count in counts.items() if name != NO_RELATION]
    gold, predicted, right = (sum(column) for column in zip(*relations, strict=True)) if relations else (0, 0, 0)
    return {"micro_f1": micro_f1(gold, predicted, right), "auprc": mean_area(curve_areas(rows))}


def micro_f1(gold: float, predicted: float, right: float) -> float:
    """0..100, of how often the relations are gold, predicted, and both."""
    sides = gold + predicted
    return 100 * (2 * right / sides if sides else 0.0)


def mean_area(areas_K: Sequence[float]) -> float:
    """0..100, over the classes that have a curve; nan where none has."""
    defined = [area for area in areas_K if not np.isnan(area)]
    return 100 * float(np.mean(defined)) if defined else float("nan")


def curve_areas(rows: Sequence[Row]) -> list[float]:
    """The area of each class, 0..1, in the order of ``RE_LABELS``; none at all where a row has no ``scores``."""
    scores_and_gold = scores_of(rows)
    if scores_and_gold is None:
        return []
    scores_NK, gold_N = scores_and_gold
    sorted_KN = np.sort(scores_NK.T, axis=1)
    return [_area(sorted_KN[k], scores_NK[gold_N == k, k]) for k in range(len(RE_LABELS))]


def scores_of(rows: Sequence[Row]) -> tuple[NDArray[np.float64], NDArray[np.int64]] | None:
    """The probabilities (N, K) and the gold class (N) of all rows; None where a row has no ``scores``."""
    if any(row.scores is None for row in rows):
        return None
    scores_NK = np.array([row.scores for row in rows], dtype=float)
    if scores_NK.shape[1:] != (len(RE_LABELS),) or not np.isfinite(scores_NK).all():
        raise ValueError(f"scores of a row should be {len(RE_LABELS)} finite numbers")
    ids = {label: id_ for id_, label in enumerate(RE_LABELS)}
    return scores_NK, np.array([ids[row.gold] for row in rows])


def _area(all_N: NDArray[np.float64], of_gold_P: NDArray[np.float64]) -> float:
    """The area from the ascending scores of all rows and those of the gold ones."""
    score_T, gold_at_T = np.unique(of_gold_P, return_counts=True)
    above_T = len(all_N) - np.searchsorted(all_N, score_T, side="right")
    from_T = len(all_N) - np.searchsorted(all_N, score_T, side="left")
    return area_under(gold_at_T, above_T, from_T)


def area_under(gold_at_T: NDArray[Any], above_T: NDArray[Any], from_T: NDArray[Any]) -> float:
    """The area, by trapezoids, under a curve at the distinct scores of gold rows, ascending, where recall
    grows. Equal scores are one point; nan without gold rows.

    Args:
        gold_at_T: gold rows of each score, at least one.
        above_T: rows with a higher score.
        from_T: rows with this score or a higher one.
    """
    if not len(gold_at_T):
        return float("nan")
    gold_from_T = np.cumsum(gold_at_T[::-1])[::-1]
    precision_T = gold_from_T / from_T
    before_T = np.where(above_T > 0, (gold_from_T - gold_at_T) / np.maximum(above_T, 1), 1.0)
    gain_T = gold_at_T / gold_from_T[0]
    return float(gain_T @ (precision_T + before_T) / 2)


def tables(rows: Sequence[Row]) -> dict[str, Table]:
    """The table "classes" with ``auprc``, 0..100, None without gold or without scores."""
    lines = class_rows(rows, RE_LABELS)
    for line, area in zip(lines, curve_areas(rows), strict=False):  # none, or one for each of RE_LABELS
        line["auprc"] = None if np.isnan(area) else 100 * area
    return {"classes": lines}
