"""Scores of WoS dialogue states: joint goal accuracy and slot micro F1 (paper 3.8.2), without torch.

The joint goal compares sets. ``slot_micro_f1`` is the published one: the F1 of a turn uses lists, so a value predicted
twice counts twice; turns are averaged, not pooled; an empty gold state scores 1 against an empty prediction and 0
against any other. ``slot_pooled_f1`` is the usual "micro F1": entries of all turns are counted together, as sets (nan
if neither side has any).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from finetune.examples import Row, Table
from finetune.metrics import count_row


def score(rows: Sequence[Row]) -> dict[str, float]:
    """``joint_goal_acc``, ``slot_micro_f1`` and ``slot_pooled_f1``, 0..100, of lists of "domain-slot-value"."""
    return score_counts(count_by_row(rows))


def count_by_row(rows: Sequence[Row]) -> NDArray[np.float64]:
    """For each turn (rows, 4): whether the states are equal, the F1 of the lists, 0..1, the number of entries in both
    sets, and the number of entries of both sides."""
    counts = []
    for row in rows:
        gold, predicted = set(row.gold), set(row.prediction)
        entries = len(gold) + len(predicted)
        counts.append((gold == predicted, _turn_f1(row.gold, row.prediction), len(gold & predicted), entries))
    return np.array(counts, dtype=float)


def score_counts(counts_N4: NDArray[np.float64]) -> dict[str, float]:
    """``score`` of what ``count_by_row`` counts; the turns are added one after the other."""
    joint, turns, right, entries = np.cumsum(counts_N4, axis=0)[-1].tolist()
    return {
        "joint_goal_acc": 100 * joint / len(counts_N4),
        "slot_micro_f1": 100 * turns / len(counts_N4),
        "slot_pooled_f1": 100 * 2 * right / entries if entries else math.nan,
    }


def _turn_f1(gold: Sequence[str], predicted: Sequence[str]) -> float:
    if not gold:
        return float(not predicted)
    right = sum(value in predicted for value in gold)
    missed = len(gold) - right
    invented = sum(value not in gold for value in predicted)
    return 2 * right / (2 * right + missed + invented) if right else 0.0


def tables(rows: Sequence[Row]) -> dict[str, Table]:
    """Counts, precision, recall and F1 by slot; shares in 0..100, None where undefined."""
    counts = defaultdict[str, list[int]](lambda: [0, 0, 0])
    for row in rows:
        gold, predicted = set(row.gold), set(row.prediction)
        for column, entries in enumerate((gold, predicted, gold & predicted)):
            for entry in entries:
                counts["-".join(entry.split("-", 2)[:2])][column] += 1
    return {"by slot": [{"slot": slot, **count_row(*sides)} for slot, sides in sorted(counts.items())]}
