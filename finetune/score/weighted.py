"""The metrics of a task over many resamples at once: a resample is a row of weights, how often each example counts.

```
rows ─ once ─▶ counts of each example (N, K) ─┐
                    weights of resamples (B, N) ┴─▶ (B, K) ─▶ metrics (B)
```
All metrics of KLUE but one come from sums over the examples, so a resample costs a row of a matrix product where
``Task.score`` goes through all examples again; the area under the precision-recall curve sorts once and sums on. Same
values as ``Task.score`` of the examples repeated (tests hold every task to it), which own tasks fall back to.
Legend: ``B`` resamples, ``N`` examples, ``K`` counts, ``C`` classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finetune.examples import Row
from finetune.task import Task

Array = NDArray[Any]
Metrics = dict[str, NDArray[np.float64]]
Weighted = Callable[[Array], Metrics]
ROWS_AT_ONCE = 50  # resamples, so that the weights of 10,000 examples take 4 MB


def weigh(task: Task, rows: Sequence[Row]) -> Weighted:
    """The metrics of ``task`` as a function of weights (B, N), whole numbers from 0; nan where undefined."""
    prepare = FAST.get(task.name) if task.own is None else None
    found = prepare(rows) if prepare is not None else partial(_repeat, task, rows)
    return partial(_in_parts, found)


def _in_parts(metrics_of: Weighted, weights_BN: Array) -> Metrics:
    starts = range(0, len(weights_BN), ROWS_AT_ONCE)
    parts = [metrics_of(weights_BN[start : start + ROWS_AT_ONCE].astype(np.float64)) for start in starts]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _repeat(task: Task, rows: Sequence[Row], weights_BN: Array) -> Metrics:
    """The slow way that is always right."""
    drawn = (np.repeat(np.arange(len(rows)), w_N.astype(int)).tolist() for w_N in weights_BN)
    found = [task.score([rows[i] for i in indices]) for indices in drawn]
    return {name: np.array([scores[name] for scores in found]) for name in found[0]}


def _share(part: Array, whole: Array) -> Array:
    """0..100; nan of nothing."""
    return np.divide(100.0 * part, whole, out=np.full(np.shape(whole), np.nan), where=whole > 0)


def _macro_f1(gold_BC: Array, predicted_BC: Array, right_BC: Array) -> Array:
    """Mean F1 over the classes on either side, 0..100."""
    f1_BC = _share(2 * right_BC, gold_BC + predicted_BC)
    return _share(np.nansum(f1_BC, axis=1), np.isfinite(f1_BC).sum(axis=1)) / 100


def _sides(gold: Array, predicted: Array, owner: Array, rows: int, classes: int) -> Array:
    """How often each class is gold, predicted, both, in each row: (N, 3C). One entry of the arrays is one decision."""
    keep = gold == predicted
    places = [owner * classes + gold, owner * classes + predicted, (owner * classes + gold)[keep]]
    return np.hstack([np.bincount(place, minlength=rows * classes).reshape(rows, classes) for place in places])


def _labels(rows: Sequence[Row]) -> tuple[Array, list[str]]:
    names = sorted({label for row in rows for label in (row.gold, row.prediction)})
    ids = {name: number for number, name in enumerate(names)}
    gold, predicted = (np.array([ids[row[side]] for row in rows]) for side in (1, 2))
    return _sides(gold, predicted, np.arange(len(rows)), len(rows), len(names)), names


def _ynat(rows: Sequence[Row]) -> Weighted:
    counts_NK, _ = _labels(rows)
    return lambda weights_BN: {"macro_f1": _macro_f1(*np.split(weights_BN @ counts_NK, 3, axis=1))}


def _nli(rows: Sequence[Row]) -> Weighted:
    right_N = np.array([row.gold == row.prediction for row in rows], dtype=float)
    return lambda weights_BN: {"accuracy": _share(weights_BN @ right_N, weights_BN.sum(axis=1))}


def _sts(rows: Sequence[Row]) -> Weighted:
    from finetune.tasks.similarity import SIMILAR_FROM

    gold_N, predicted_N = (np.array([row[side] for row in rows], dtype=float) for side in (1, 2))
    x, y = gold_N - gold_N.mean(), predicted_N - predicted_N.mean()  # sums of squares stay small
    is_gold, is_predicted = gold_N >= SIMILAR_FROM, predicted_N >= SIMILAR_FROM
    sides, both = is_gold * 1.0 + is_predicted, is_gold & is_predicted
    sums_NK = np.stack([np.ones_like(x), x, y, x * x, y * y, x * y, sides, both], axis=1)

    def metrics(weights_BN: Array) -> Metrics:
        n, sx, sy, sxx, syy, sxy, side, both = (weights_BN @ sums_NK).T
        spread = np.sqrt(np.maximum(sxx - sx * sx / n, 0) * np.maximum(syy - sy * sy / n, 0))
        tiny = 1e-12 * np.sqrt(sxx * syy)  # rounding, where one side is constant
        pearson = np.divide(sxy - sx * sy / n, spread, out=np.full_like(n, np.nan), where=spread > tiny)
        return {"pearsonr": 100 * np.clip(pearson, -1, 1), "f1": np.nan_to_num(_share(2 * both, side))}

    return metrics


def _ner(rows: Sequence[Row]) -> Weighted:
    from finetune.tasks.ner.metrics import NER_TAGS, OUTSIDE, count_by_row

    entities_NK, characters_NK, specials_NK = count_by_row(rows)
    split, tags = entities_NK.shape[1], len(NER_TAGS)
    counts_NK = np.hstack([entities_NK, characters_NK, specials_NK])

    def metrics(weights_BN: Array) -> Metrics:
        sums_BK = weights_BN @ counts_NK
        entity_BK, *tag_BK = sums_BK[:, :split], sums_BK[:, split : split + 3 * tags], sums_BK[:, split + 3 * tags :]
        f1_BC, special_f1_BC = (_tag_f1(*np.split(part, 3, axis=1)) for part in tag_BK)
        return {
            "entity_macro_f1": _macro_f1(*np.split(entity_BK, 3, axis=1)),
            "character_macro_f1": f1_BC.mean(axis=1),
            "character_macro_f1_with_specials": special_f1_BC.mean(axis=1),
            "character_macro_f1_no_o": f1_BC[:, :OUTSIDE].mean(axis=1),
        }

    return metrics


def _tag_f1(gold_BC: Array, predicted_BC: Array, right_BC: Array) -> Array:
    """F1 of each tag, 100 for one on neither side, as published."""
    return np.nan_to_num(_share(2 * right_BC, gold_BC + predicted_BC), nan=100.0)


def _re(rows: Sequence[Row]) -> Weighted:
    from finetune.tasks.re.metrics import NO_RELATION, RE_LABELS

    counts_NK, names = _labels(rows)
    is_relation = np.array([name != NO_RELATION for name in names])
    summed_NK = np.stack([side[:, is_relation].sum(axis=1) for side in np.split(counts_NK, 3, axis=1)], axis=1)
    has_scores = all(row.scores is not None for row in rows)
    curves = [_curve(rows, k, label) for k, label in enumerate(RE_LABELS)] if has_scores else []

    def metrics(weights_BN: Array) -> Metrics:
        gold, predicted, right = (weights_BN @ summed_NK).T
        weights_NB = np.ascontiguousarray(weights_BN.T)
        areas_CB = np.array([curve(weights_NB) for curve in curves] or [np.full(len(gold), np.nan)])
        auprc = _share(np.nansum(areas_CB, axis=0), np.isfinite(areas_CB).sum(axis=0))
        return {"micro_f1": np.nan_to_num(_share(2 * right, gold + predicted)), "auprc": auprc}

    return metrics


def _curve(rows: Sequence[Row], k: int, label: str) -> Callable[[Array], Array]:
    """Area under the precision-recall curve of one class, by trapezoids, 0..1, of weights (N, B); nan without gold."""
    scores_N = np.array([row.scores[k] for row in rows], dtype=float)
    is_gold_N = np.array([row.gold == label for row in rows])
    down_N = np.argsort(-scores_N, kind="stable")
    gold_P = down_N[is_gold_N[down_N]]
    firsts_T = np.flatnonzero(np.diff(scores_N[gold_P], prepend=np.nan) != 0)  # equal scores are one point of the curve
    low_N, point_T = -scores_N[down_N], -scores_N[gold_P[firsts_T]]
    edges = np.stack([np.searchsorted(low_N, point_T, side=side) for side in ("left", "right")], axis=1).ravel()
    cuts, place = np.unique(np.append(0, edges), return_inverse=True)
    is_end = cuts == len(rows)  # nothing comes after it, so no sum starts there

    def area(weights_NB: Array) -> Array:
        if not len(gold_P):
            return np.full(weights_NB.shape[1], np.nan)
        between = np.add.reduceat(weights_NB[down_N], cuts[~is_end], axis=0)
        above = np.vstack([np.zeros_like(between[:1]), np.cumsum(between, axis=0)])[place[1:]]
        gold_T = np.cumsum(np.add.reduceat(weights_NB[gold_P], firsts_T, axis=0), axis=0)
        before_T = np.vstack([np.zeros_like(gold_T[:1]), gold_T[:-1]])
        ends = [
            np.divide(part, whole, out=np.ones_like(part), where=whole > 0)
            for part, whole in ((before_T, above[::2]), (gold_T, above[1::2]))
        ]
        gain, whole = ((gold_T - before_T) * sum(ends)).sum(axis=0) / 2, gold_T[-1]
        return np.divide(gain, whole, out=np.full_like(whole, np.nan), where=whole > 0)

    return area


def _dp(rows: Sequence[Row]) -> Weighted:
    from finetune.tasks.dp.metrics import FREQUENT_TYPES, WRONG_HEAD, flatten

    words = flatten(rows)
    owner = np.repeat(np.arange(len(rows)), [len(row.gold["heads"]) for row in rows])
    is_right = words.heads == words.gold_heads
    gold_types = np.minimum(words.gold_types, FREQUENT_TYPES)
    types = np.where(is_right, np.minimum(words.types, FREQUENT_TYPES), WRONG_HEAD)
    most = 1 + max((int(side.max()) for side in (words.heads, words.gold_heads) if len(side)), default=0)
    by_head_NK = _sides(words.gold_heads, words.heads, owner, len(rows), most)
    by_type_NK = _sides(gold_types, types, owner, len(rows), WRONG_HEAD + 1)
    is_exact = is_right & (words.gold_types == words.types)
    simple = (np.ones(len(owner)), is_right, gold_types == types, is_exact)
    simple_NK = np.stack([np.bincount(owner, part, minlength=len(rows)) for part in simple], axis=1)

    def metrics(weights_BN: Array) -> Metrics:
        count, heads, both, exact = (weights_BN @ simple_NK).T
        return {
            "uas_macro_f1": _macro_f1(*np.split(weights_BN @ by_head_NK, 3, axis=1)),
            "uas_micro_f1": _share(heads, count),
            "las_macro_f1": _macro_f1(*np.split(weights_BN @ by_type_NK, 3, axis=1)),
            "las_micro_f1": _share(both, count),
            "las_exact": _share(exact, count),
        }

    return metrics


def _means(task_score: Callable[[Sequence[Row]], dict[str, float]], rows: Sequence[Row]) -> Weighted:
    """Metrics that are means over the examples."""
    each = [task_score([row]) for row in rows]
    names = list(each[0])
    values_NK = np.array([[scores[name] for name in names] for scores in each])

    def metrics(weights_BN: Array) -> Metrics:
        return dict(zip(names, (weights_BN @ values_NK).T / weights_BN.sum(axis=1), strict=True))

    return metrics


def _mrc(rows: Sequence[Row]) -> Weighted:
    from finetune.tasks.mrc.metrics import score

    return _means(score, rows)


def _wos(rows: Sequence[Row]) -> Weighted:
    from finetune.tasks.wos.metrics import score

    means = _means(lambda own: {name: score(own)[name] for name in ("joint_goal_acc", "slot_micro_f1")}, rows)
    pairs = [(set(row.gold), set(row.prediction)) for row in rows]
    pooled_NK = np.array([[len(gold & predicted), len(gold) + len(predicted)] for gold, predicted in pairs])

    def metrics(weights_BN: Array) -> Metrics:
        found, sides = (weights_BN @ pooled_NK).T
        return {**means(weights_BN), "slot_pooled_f1": _share(2 * found, sides)}

    return metrics


FAST: Mapping[str, Callable[[Sequence[Row]], Weighted]] = {
    "ynat": _ynat, "klue-nli": _nli, "klue-sts": _sts, "klue-ner": _ner, "klue-re": _re, "klue-dp": _dp,
    "klue-mrc": _mrc, "wos": _wos,
}  # fmt: skip
