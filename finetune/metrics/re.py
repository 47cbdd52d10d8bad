"""Scores of KLUE-RE: micro F1 without ``no_relation``, and the area under the precision-recall curve (paper 3.5.2).

AUPRC is the trapezoid area under the points of ``precision_recall_curve`` (not average precision), averaged over the
classes, ``no_relation`` among them. The official dev set holds all 30. Where a class has no gold example (a part of the
data) it has no curve and is left out; the published code gives nan there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.metrics import auc, f1_score, precision_recall_curve

from finetune.task import Row

RE_LABELS = (
    "no_relation", "org:dissolved", "org:founded", "org:place_of_headquarters", "org:alternate_names",
    "org:member_of", "org:members", "org:political/religious_affiliation", "org:product", "org:founded_by",
    "org:top_members/employees", "org:number_of_employees/members", "per:date_of_birth", "per:date_of_death",
    "per:place_of_birth", "per:place_of_death", "per:place_of_residence", "per:origin", "per:employee_of",
    "per:schools_attended", "per:alternate_names", "per:parents", "per:children", "per:siblings", "per:spouse",
    "per:other_family", "per:colleagues", "per:product", "per:religion", "per:title",
)  # fmt: skip


def score(rows: Sequence[Row]) -> dict[str, float]:
    """``micro_f1`` and ``auprc``, 0..100 (``auprc`` is nan where rows have no ``scores``).

    Golds and predictions are label names; ``scores`` of a row are 30 probabilities in the order of ``RE_LABELS``.
    """
    gold, predicted = [row.gold for row in rows], [row.prediction for row in rows]
    micro = f1_score(gold, predicted, labels=list(RE_LABELS[1:]), average="micro", zero_division=0)
    return {"micro_f1": 100 * float(micro), "auprc": 100 * _mean_auprc(rows)}


def _mean_auprc(rows: Sequence[Row]) -> float:
    if any(row.scores is None for row in rows):
        return float("nan")
    gold = np.array([RE_LABELS.index(row.gold) for row in rows])
    probabilities = np.array([row.scores for row in rows], dtype=float)
    areas = []
    for label in np.unique(gold):
        precision, recall, _ = precision_recall_curve(gold == label, probabilities[:, label], drop_intermediate=False)
        areas.append(auc(recall, precision))
    return float(np.mean(areas))
