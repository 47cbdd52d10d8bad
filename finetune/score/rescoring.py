"""The metrics of a task over many resamples at once. A resample is a list of row numbers.

Matching labels, entities, trees and answers is done once per row. A resample then costs one row of a matrix product, or
a look-up per row. Sums are exact or in the order of the rows, so values equal those of ``Task.score`` to the last bit.
Custom tasks are scored again from their rows. Legend: ``B`` resamples, ``N`` rows, ``K`` counts, ``C`` classes, ``T``
distinct scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finetune.examples import Row
from finetune.metrics import count_sides
from finetune.task import Task
from finetune.tasks.dp import metrics as dp
from finetune.tasks.mrc import metrics as mrc
from finetune.tasks.ner import metrics as ner
from finetune.tasks.re.metrics import NO_RELATION, area_under, mean_area, micro_f1, scores_of
from finetune.tasks.sts import task as sts
from finetune.tasks.wos import metrics as wos

Array = NDArray[Any]
DrawnRows = NDArray[np.int64]  # the rows of one resample
Scores = list[dict[str, float]]  # of one resample each
ScoreDrawn = Callable[[Sequence[DrawnRows]], Scores]
DRAWN_AT_ONCE = 50  # resamples, so that the counts of 10,000 rows take 4 MB


def rescore(task: Task, rows: Sequence[Row], resamples: Iterable[DrawnRows]) -> dict[str, NDArray[np.float64]]:
    """The metrics of ``task`` for each resample, (B); nan where a metric is undefined."""
    prepare = FAST.get(task.name) if task.custom is None else None
    one_by_one = _one_by_one(lambda rows_of: task.score([rows[i] for i in rows_of.tolist()]))  # the slow fallback
    score_drawn = prepare(rows) if prepare is not None else one_by_one
    remaining, found = iter(resamples), Scores()
    while drawn := list(islice(remaining, DRAWN_AT_ONCE)):
        found += score_drawn(drawn)
    return {name: np.array([scores[name] for scores in found]) for name in (found[0] if found else ())}


def _one_by_one(score: Callable[[DrawnRows], dict[str, float]]) -> ScoreDrawn:
    return lambda drawn: [score(rows_of) for rows_of in drawn]


def _often(drawn: Sequence[DrawnRows], rows: int) -> NDArray[np.float64]:
    """How often each row is drawn, (B, N)."""
    return np.stack([np.bincount(rows_of, minlength=rows) for rows_of in drawn]).astype(np.float64)


def _summed(counts: Sequence[Array], score: Callable[..., dict[str, float]]) -> ScoreDrawn:
    """Metrics of sums over the rows, of several counts (N, K) each."""
    counts_NK, ends = np.hstack(counts).astype(np.float64), np.cumsum([part.shape[1] for part in counts])[:-1]

    def score_drawn(drawn: Sequence[DrawnRows]) -> Scores:
        return [score(*np.split(sums_K, ends)) for sums_K in _often(drawn, len(counts_NK)) @ counts_NK]

    return score_drawn


def _labels(rows: Sequence[Row]) -> tuple[Array, Array, list[str]]:
    """The ids of the golds (N), the counts of all classes (N, 3C), and their names."""
    names = sorted({label for row in rows for label in (row.gold, row.prediction)})
    ids = {name: number for number, name in enumerate(names)}
    gold, predicted = (np.array([ids[row[side]] for row in rows]) for side in (1, 2))
    return gold, count_sides(gold, predicted, np.arange(len(rows)), len(rows), len(names)), names


def _ynat(rows: Sequence[Row]) -> ScoreDrawn:
    from finetune.tasks.labels import ClassCount, macro_f1

    gold_N, counts_NK, names = _labels(rows)
    counts_NK = counts_NK.astype(np.float64)

    def score(rows_of: DrawnRows, sums_K: Array) -> dict[str, float]:
        found, first = np.unique(gold_N[rows_of], return_index=True)
        order = dict.fromkeys([*found[np.argsort(first)].tolist(), *range(len(names))])  # as the classes come up
        sides_C = sums_K.reshape(3, -1).T.tolist()
        return {"macro_f1": macro_f1([ClassCount(*sides_C[c]) for c in order if any(sides_C[c])])}

    return lambda drawn: list(map(score, drawn, _often(drawn, len(rows)) @ counts_NK))


def _nli(rows: Sequence[Row]) -> ScoreDrawn:
    is_right_N = np.array([row.gold == row.prediction for row in rows])
    return _one_by_one(lambda rows_of: {"accuracy": 100 * int(is_right_N[rows_of].sum()) / len(rows_of)})


def _sts(rows: Sequence[Row]) -> ScoreDrawn:
    gold_N, predicted_N = sts.numbers_of(rows)
    return _one_by_one(lambda rows_of: sts.score_pairs(gold_N[rows_of], predicted_N[rows_of]))


def _re(rows: Sequence[Row]) -> ScoreDrawn:
    _, counts_NK, names = _labels(rows)
    is_relation = np.array([name != NO_RELATION for name in names])
    sides_N3 = np.stack([side[:, is_relation].sum(axis=1) for side in np.split(counts_NK, 3, axis=1)], axis=1)
    scores_NK, gold_N = scores_of(rows) or (np.zeros((len(rows), 0)), np.zeros(0))
    curves = [_curve(scores_N, gold_N == k) for k, scores_N in enumerate(scores_NK.T)]

    def area(points_3T: Array) -> float:
        return area_under(*points_3T[:, points_3T[0] > 0])

    def score_drawn(drawn: Sequence[DrawnRows]) -> Scores:
        often_BN = _often(drawn, len(rows))
        often_NB = np.ascontiguousarray(often_BN.T)
        areas_KB = [list(map(area, curve(often_NB))) for curve in curves]
        micro_B = [micro_f1(*sides_3) for sides_3 in (often_BN @ sides_N3).tolist()]
        return [
            {"micro_f1": micro, "auprc": mean_area([areas_B[b] for areas_B in areas_KB])}
            for b, micro in enumerate(micro_B)
        ]

    return score_drawn


def _curve(scores_N: Array, is_gold_N: Array) -> Callable[[Array], Array]:
    """The arguments of ``area_under``, (B, 3, T), from how often the rows are drawn (N, B); T ascends over the
    distinct scores of gold rows, some of which a resample lacks."""
    up_N = np.argsort(scores_N, kind="stable")
    gold_P = up_N[is_gold_N[up_N]]
    score_T, firsts_T = np.unique(scores_N[gold_P], return_index=True)
    from_T, above_T = (np.searchsorted(scores_N[up_N], score_T, side=side) for side in ("left", "right"))

    def points(often_NB: Array) -> Array:
        below = np.vstack([np.zeros_like(often_NB[:1]), np.cumsum(often_NB[up_N], axis=0)])
        gold_at_TB = np.add.reduceat(often_NB[gold_P], firsts_T, axis=0) if len(gold_P) else below[:0]
        return np.stack([gold_at_TB, below[-1] - below[above_T], below[-1] - below[from_T]]).transpose(2, 0, 1)

    return points


def _mrc(rows: Sequence[Row]) -> ScoreDrawn:
    values_KN = np.array(mrc.score_questions(rows)).T
    return _one_by_one(lambda rows_of: mrc.mean_scores(values_KN[:, rows_of].tolist()))


def _wos(rows: Sequence[Row]) -> ScoreDrawn:
    counts_N4 = wos.count_by_row(rows)
    return _one_by_one(lambda rows_of: wos.score_counts(counts_N4[rows_of]))


FAST: Mapping[str, Callable[[Sequence[Row]], ScoreDrawn]] = {
    "ynat": _ynat, "klue-nli": _nli, "klue-sts": _sts, "klue-re": _re, "klue-mrc": _mrc, "wos": _wos,
    "klue-ner": lambda rows: _summed(ner.count_by_row(rows), ner.score_counts),
    "klue-dp": lambda rows: _summed(dp.count_by_row(rows), dp.score_counts),
}  # fmt: skip
