"""Resampling of scored examples: confidence intervals by bootstrap, and approximate randomization between two models.

Groups (a dialogue, a passage) are drawn and swapped as a whole. The draws depend on the groups and the seed alone, so
two models see the same resamples and the bootstrap is paired. An interval comes from the variance of the resamples, not
from percentiles: metrics that average over classes are biased in a resample, where rare classes are missing.

A resample is a list of row numbers. Labels, entities, trees and answers are matched once per row; a resample then costs
one row of a matrix product, or a look-up per row. Sums are exact or in the order of the rows, so values equal those of
``Task.score`` to the last bit. Custom tasks are scored again from their rows.
Legend: ``B`` resamples, ``N`` rows, ``K`` counts, ``C`` classes, ``T`` distinct scores, ``S`` seeds, ``U`` groups.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finetune.examples import Row
from finetune.metrics import CORRELATIONS, SHARES, count_sides
from finetune.score.significance import MANY, Interval, Part, Sample, interval_around
from finetune.task import Task
from finetune.tasks.dp import metrics as dp
from finetune.tasks.mrc import metrics as mrc
from finetune.tasks.ner import metrics as ner
from finetune.tasks.re.metrics import NO_RELATION, area_under, mean_area, micro_f1, scores_of
from finetune.tasks.sts import task as sts
from finetune.tasks.wos import metrics as wos

SAMPLES, SEED = 200, 42  # of the intervals in scores.json
RESAMPLES, SHUFFLES = 1_000, 2_000  # of a comparison

Array = NDArray[Any]
DrawnRows = NDArray[np.int64]  # the rows of one resample
Scores = list[dict[str, float]]  # of one resample each
ScoreDrawn = Callable[[Sequence[DrawnRows]], Scores]
DRAWN_AT_ONCE = 50  # resamples, so that the counts of 10,000 rows take 4 MB


def rescore(task: Task, rows: Sequence[Row], resamples: Iterable[DrawnRows]) -> dict[str, NDArray[np.float64]]:
    """The metrics of ``task`` for each resample, (B); nan where a metric is undefined."""
    prepare = FAST.get(task.name) if task.custom is None else None
    slow = _picked([np.arange(len(rows))], lambda rows_of: task.score([rows[i] for i in rows_of.tolist()]))
    score_drawn = prepare(rows) if prepare is not None else slow
    remaining, all_scores = iter(resamples), Scores()
    while drawn := list(islice(remaining, DRAWN_AT_ONCE)):
        all_scores += score_drawn(drawn)
    return {name: np.array([scores[name] for scores in all_scores]) for name in (all_scores[0] if all_scores else ())}


def _picked(values: Sequence[Array], score: Callable[..., dict[str, float]]) -> ScoreDrawn:
    """Metrics of the drawn rows of several arrays, (N) or (N, K) each."""
    return lambda drawn: [score(*(of_rows[rows_of] for of_rows in values)) for rows_of in drawn]


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
        classes, first = np.unique(gold_N[rows_of], return_index=True)
        order = dict.fromkeys([*classes[np.argsort(first)].tolist(), *range(len(names))])  # as the classes come up
        sides_C = sums_K.reshape(3, -1).T.tolist()
        return {"macro_f1": macro_f1([ClassCount(*sides_C[c]) for c in order if any(sides_C[c])])}

    return lambda drawn: list(map(score, drawn, _often(drawn, len(rows)) @ counts_NK))


def _nli(rows: Sequence[Row]) -> ScoreDrawn:
    is_right_N = np.array([row.gold == row.prediction for row in rows])
    return _picked([is_right_N], lambda drawn_N: {"accuracy": 100 * int(drawn_N.sum()) / len(drawn_N)})


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
        auprc_B = [mean_area([areas_B[b] for areas_B in areas_KB]) for b in range(len(drawn))]
        return [{"micro_f1": micro, "auprc": auprc} for micro, auprc in zip(micro_B, auprc_B, strict=True)]

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
    return _picked([np.array(mrc.score_questions(rows))], lambda values_NK: mrc.mean_scores(values_NK.T.tolist()))


FAST: Mapping[str, Callable[[Sequence[Row]], ScoreDrawn]] = {
    "ynat": _ynat, "klue-nli": _nli, "klue-re": _re, "klue-mrc": _mrc,
    "klue-sts": lambda rows: _picked(sts.numbers_of(rows), sts.score_pairs),
    "wos": lambda rows: _picked([wos.count_by_row(rows)], wos.score_counts),
    "klue-ner": lambda rows: _summed(ner.count_by_row(rows), ner.score_counts),
    "klue-dp": lambda rows: _summed(dp.count_by_row(rows), dp.score_counts),
}  # fmt: skip


def number_groups(groups: Sequence[str]) -> NDArray[np.int64]:
    """The group of each example as a number, in the order of first appearance."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(groups))}
    return np.array([numbers[name] for name in groups])


def draw(groups: Sequence[str], samples: int, seed: int) -> Iterator[DrawnRows]:
    """Yield the row numbers of each resample: groups drawn with replacement by ``seed``, each with all its rows."""
    generator = np.random.default_rng(seed)
    group_N = number_groups(groups)
    rows_N, sizes_U = np.argsort(group_N, kind="stable"), np.bincount(group_N)
    starts_U = np.cumsum(sizes_U) - sizes_U
    for _ in range(samples):
        drawn_U = generator.integers(len(sizes_U), size=len(sizes_U))
        sizes = sizes_U[drawn_U]
        shift = np.repeat(starts_U[drawn_U] - (np.cumsum(sizes) - sizes), sizes)
        yield rows_N[np.arange(len(shift)) + shift]


def error_and_interval(
    value: float | None, resampled: Sequence[float | None] | Array, units: int, metric: str = "",
    limits: Interval = (0.0, 100.0),
) -> tuple[float, Interval] | tuple[None, None]:  # fmt: skip
    """The standard error of a value, and its 95 % interval.

    Both are None if the value or one of its resamples is undefined, or there are fewer than 2.

    Args:
        units: the groups that are drawn.
        metric, limits: as in ``interval_around``.
    """
    values_B = np.array(resampled, float)
    if value is None or len(values_B) < 2 or math.isnan(value) or np.isnan(values_B).any():
        return None, None
    variance = float(np.var(values_B, ddof=1))
    part = Part(variance * units / max(units - 1, 1), max(units - 1, 1))
    if metric in CORRELATIONS:  # resampled correlations are skewed, their Fisher's z is not
        z_B = np.arctanh(np.clip(values_B / 100, -0.999999, 0.999999))
        variance = float(np.var(z_B, ddof=1)) * (100 - value**2 / 100) ** 2
        part = Part(variance, MANY)
    return math.sqrt(variance), interval_around(value, [part], units, metric, limits)


def bootstrap(
    task: Task, rows: Sequence[Row], groups: Sequence[str], samples: int, seed: int
) -> dict[str, Interval | None]:
    """The 95 % interval of each metric; None where a resample leaves the metric undefined.

    Args:
        groups: the group of each row; a group (a dialogue, a passage) is drawn as a whole.
        samples: number of resamples; fewer than 2 give no intervals.
    """
    scores, units = task.score(rows), len(set(groups))
    if samples < 2:
        return dict.fromkeys(scores)
    known = {name: value for name, value in scores.items() if name in SHARES and units == len(rows)}
    resampled = rescore(task, rows, draw(groups, samples, seed)) if len(known) < len(scores) else {}
    return {
        name: interval_around(value, [Part(value * (100 - value) / units, MANY)], units)
        if name in known
        else error_and_interval(value, resampled[name], units, name)[1]
        for name, value in scores.items()
    }


def resample(
    task: Task, rows_by_seed: dict[int, list[Row]], groups: Sequence[str], samples: int = RESAMPLES
) -> dict[str, Sample]:
    """For each metric the scores of all seeds, on the examples and on resampled examples.

    Args:
        rows_by_seed: rows of each training seed, for the same examples in the same order.
        groups: the group of each example.
    """
    units = len(set(groups))
    seeds = tuple(sorted(rows_by_seed))
    scores = [task.score(rows_by_seed[number]) for number in seeds]
    resampled = [rescore(task, rows_by_seed[number], draw(groups, samples, SEED)) for number in seeds]
    return {
        name: Sample(
            seeds, np.array([each[name] for each in scores]), np.stack([part[name] for part in resampled]), units
        )
        for name in scores[0]
    }


def randomize(
    task: Task, pairs: Sequence[tuple[list[Row], list[Row]]], groups: Sequence[str], shuffles: int = SHUFFLES
) -> dict[str, float]:
    """The two-sided p of each metric by approximate randomization (Noreen 1989; Yeh 2000).

    In each shuffle a coin decides for each group whether the predictions of the two models are swapped, for all pairs
    of seeds alike; p is the share of shuffles whose mean difference is at least the observed one, which counts as one
    of the shuffles. The test asks whether these trained models differ on examples of this kind, not whether other
    trainings would.
    """
    group_N = number_groups(groups)
    swaps_BN = np.random.default_rng(SEED).integers(2, size=(shuffles, int(group_N.max()) + 1))[:, group_N]
    totals: dict[str, Array] = {}
    observed: dict[str, float] = {}
    places_N = np.arange(len(group_N))
    for rows_a, rows_b in pairs:
        both = [*rows_a, *rows_b]
        first, second = (
            rescore(task, both, (places_N + len(places_N) * swap_N for swap_N in swaps))
            for swaps in (swaps_BN, 1 - swaps_BN)
        )
        observed_a, observed_b = task.score(rows_a), task.score(rows_b)
        for name in first:
            totals[name] = totals.get(name, 0.0) + second[name] - first[name]
            observed[name] = observed.get(name, 0.0) + observed_b[name] - observed_a[name]
    return {
        name: float("nan")
        if not np.isfinite(totals[name]).all() or not np.isfinite(observed[name])
        else (1 + int((np.abs(totals[name]) >= abs(observed[name]) - 1e-9).sum())) / (1 + shuffles)
        for name in totals
    }
