"""Scores of KLUE-DP: unlabelled and labelled attachment (paper 3.6.2). The published UAS and LAS are the macro ones.

Quirks of the published metric: UAS macro is a macro F1 whose classes are head *positions* (0, 1, 2, …). In LAS, the 23
rarest of the 38 types are one class; where the head is wrong, the predicted type becomes a class that is never gold and
pulls the macro down: one wrong head costs 6 points. ``las_exact`` has neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from finetune.examples import Row, Table
from finetune.metrics import count_sides
from finetune.task_names import klue_facts

DP_LABELS = tuple(klue_facts("klue-dp")["labels"])  # order of paper Table 14
TYPE_IDS = {name: number for number, name in enumerate(DP_LABELS)}
FREQUENT_TYPES = 15  # types from here on are one class
WRONG_HEAD = FREQUENT_TYPES + 1

Ints = NDArray[np.int64]


class Words(NamedTuple):
    """The words of all rows, one entry each: gold and predicted head (0: root) and type id."""

    gold_heads: Ints
    gold_types: Ints
    heads: Ints
    types: Ints


def score(rows: Sequence[Row]) -> dict[str, float]:
    """``uas_macro_f1``, ``uas_micro_f1`` (which is accuracy), ``las_macro_f1``, ``las_micro_f1`` as published, and
    ``las_exact``: the share of words with right head and right type, all 38 types apart. 0..100, nan without words.

    Golds and predictions are ``{"heads": [int], "types": [name]}``, one entry a word, 0 for the root; ``ValueError`` or
    ``KeyError`` for anything else.
    """
    return score_counts(*(counts_NK.sum(axis=0) for counts_NK in count_by_row(rows)))


def count_by_row(rows: Sequence[Row]) -> tuple[Ints, Ints, Ints]:
    """What ``score`` sums over the rows: how often each head position, then each type as LAS counts it, is gold,
    predicted, and both, (rows, 3 x classes) each; and the words with right head and type, (rows, 1)."""
    words = flatten(rows)
    owner = np.repeat(np.arange(len(rows)), [len(row.gold["heads"]) for row in rows])
    is_right = words.heads == words.gold_heads
    gold_types = np.minimum(words.gold_types, FREQUENT_TYPES)
    types = np.where(is_right, np.minimum(words.types, FREQUENT_TYPES), WRONG_HEAD)
    positions, ids = np.unique(np.concatenate([words.gold_heads, words.heads]), return_inverse=True)
    is_exact = is_right & (words.gold_types == words.types)
    return (
        count_sides(ids[: len(owner)], ids[len(owner) :], owner, len(rows), len(positions)),
        count_sides(gold_types, types, owner, len(rows), WRONG_HEAD + 1),
        np.bincount(owner[is_exact], minlength=len(rows))[:, None],
    )


def score_counts(heads_K: NDArray[Any], types_K: NDArray[Any], exact_1: NDArray[Any]) -> dict[str, float]:
    """``score`` of the sums of what ``count_by_row`` counts."""
    right_heads, right_types = (np.split(sums_K, 3)[2].sum() for sums_K in (heads_K, types_K))
    words = np.split(types_K, 3)[0].sum()
    return {
        "uas_macro_f1": macro_f1(heads_K),
        "uas_micro_f1": _share(right_heads, words),
        "las_macro_f1": macro_f1(types_K),
        "las_micro_f1": _share(right_types, words),
        "las_exact": _share(exact_1[0], words),
    }


def tables(rows: Sequence[Row]) -> dict[str, Table]:
    """Attachment by gold relation type, in the order of ``DP_LABELS``; a line for each type that occurs."""
    words = flatten(rows)
    has_head = words.heads == words.gold_heads
    has_both = has_head & (words.types == words.gold_types)
    lines = []
    for number, name in enumerate(DP_LABELS):
        chosen = words.gold_types == number
        gold, heads, both = (int(mask.sum()) for mask in (chosen, has_head & chosen, has_both & chosen))
        if gold:
            counts = {"gold": gold, "right heads": heads, "right heads and types": both}
            lines.append({"type": name, **counts, "uas": _share(heads, gold), "las": _share(both, gold)})
    return {"by relation type": lines}


def flatten(rows: Sequence[Row]) -> Words:
    """The words of all rows; ``ValueError`` where golds and predictions differ in length."""
    for row in rows:
        if len({len(side[key]) for side in (row.gold, row.prediction) for key in ("heads", "types")}) > 1:
            raise ValueError(f"{row.guid}: one head and one type expected for each of {len(row.gold['heads'])} words")
    columns: list[list[Any]] = []
    for trees in ([row.gold for row in rows], [row.prediction for row in rows]):
        columns.append([head for tree in trees for head in tree["heads"]])
        columns.append([TYPE_IDS[name] for tree in trees for name in tree["types"]])
    return Words(*(np.array(column, dtype=np.int64) for column in columns))


def _share(part: float, whole: float) -> float:
    """0..100; nan of nothing."""
    return 100 * float(part / whole) if whole else float("nan")


def macro_f1(counts_K: NDArray[Any]) -> float:
    """Mean F1, 0..100, over the classes that occur, of how often each is gold, predicted, and both; nan of none."""
    gold_C, predicted_C, right_C = np.split(counts_K, 3)
    sides_C = gold_C + predicted_C
    occurs_C = sides_C > 0
    return 200 * float((right_C[occurs_C] / sides_C[occurs_C]).mean()) if occurs_C.any() else float("nan")
