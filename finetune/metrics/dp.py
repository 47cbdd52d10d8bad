"""Scores of KLUE-DP: unlabelled and labelled attachment (paper 3.6.2). The published UAS and LAS are the macro ones.

Oddities of the published metric, kept for comparability:
- UAS macro is a macro F1 whose classes are head *positions* (0, 1, 2, …).
- LAS: the 23 rarest of the 38 types are one class, so one of them for another counts as right; where the head is wrong
  the predicted type becomes a class of its own, which is never gold and pulls the macro down: one wrong head costs 6
  points.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.metrics import f1_score

from finetune.task import Row

DP_LABELS = (
    "NP", "NP_AJT", "VP", "NP_SBJ", "VP_MOD", "NP_OBJ", "AP", "NP_CNJ", "NP_MOD", "VNP", "DP", "VP_AJT", "VNP_MOD",
    "NP_CMP", "VP_SBJ", "VP_CMP", "VP_OBJ", "VNP_CMP", "AP_MOD", "X_AJT", "VP_CNJ", "VNP_AJT", "IP", "X", "X_SBJ",
    "VNP_OBJ", "VNP_SBJ", "X_OBJ", "AP_AJT", "L", "X_MOD", "X_CNJ", "VNP_CNJ", "X_CMP", "AP_CMP", "AP_SBJ", "R",
    "NP_SVJ",
)  # fmt: skip
FREQUENT_TYPES = 15  # types from here on are one class (order of paper Table 14)
WRONG_HEAD = -1

_TYPE_CLASS = {name: min(number, FREQUENT_TYPES) for number, name in enumerate(DP_LABELS)}


def score(rows: Sequence[Row]) -> dict[str, float]:
    """``uas_macro_f1``, ``uas_micro_f1``, ``las_macro_f1``, ``las_micro_f1``, 0..100, over the words of all rows.

    Golds and predictions are ``{"heads": [int], "types": [name]}``, one entry a word, 0 for the root.
    """
    gold_heads, gold_types = _flatten([row.gold for row in rows])
    heads, types = _flatten([row.prediction for row in rows])
    types = np.where(heads == gold_heads, types, WRONG_HEAD)
    return {
        "uas_macro_f1": _macro_f1(gold_heads, heads),
        "uas_micro_f1": 100 * float((gold_heads == heads).mean()),
        "las_macro_f1": _macro_f1(gold_types, types),
        "las_micro_f1": 100 * float((gold_types == types).mean()),
    }


def _flatten(trees: Sequence[dict[str, list]]) -> tuple[np.ndarray, np.ndarray]:
    heads = np.array([head for tree in trees for head in tree["heads"]])
    types = np.array([_TYPE_CLASS[name] for tree in trees for name in tree["types"]])
    return heads, types


def _macro_f1(gold: np.ndarray, predicted: np.ndarray) -> float:
    return 100 * float(f1_score(gold, predicted, average="macro", zero_division=0))
