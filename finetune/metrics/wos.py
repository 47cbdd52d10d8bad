"""Scores of WoS dialogue states: joint goal accuracy and slot micro F1 (paper 3.8.2).

The joint goal compares sets. The F1 of a turn works on the lists, so a value predicted twice counts twice; turns are
averaged, not pooled. An empty gold state scores 1 against an empty prediction and 0 against any other.
"""

from __future__ import annotations

from collections.abc import Sequence

from finetune.task import Row


def score(rows: Sequence[Row]) -> dict[str, float]:
    """``joint_goal_acc`` and ``slot_micro_f1``, 0..100, of lists of "domain-slot-value"."""
    joint = sum(set(row.gold) == set(row.prediction) for row in rows)
    slots = sum(_turn_f1(row.gold, row.prediction) for row in rows)
    return {"joint_goal_acc": 100 * joint / len(rows), "slot_micro_f1": 100 * slots / len(rows)}


def _turn_f1(gold: Sequence[str], predicted: Sequence[str]) -> float:
    if not gold:
        return float(not predicted)
    found = sum(value in predicted for value in gold)
    missed = len(gold) - found
    invented = sum(value not in gold for value in predicted)
    return 2 * found / (2 * found + missed + invented) if found else 0.0
