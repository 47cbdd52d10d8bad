"""Resampling of scored examples: confidence intervals by bootstrap, and approximate randomization between two models.

Groups (a dialogue, a passage) are drawn and swapped as a whole. The draws depend on the groups and the seed alone, so
two models see the same resamples and the bootstrap is paired. An interval comes from the variance of the resamples
(``finetune.score.intervals``), not from percentiles: metrics that average over classes are biased in a resample, where
rare classes are missing. A share of single examples needs no resamples.
Legend: ``B`` resamples, ``N`` rows, ``S`` seeds, ``U`` groups.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finetune.examples import Row
from finetune.metrics import CORRELATIONS, SHARES
from finetune.score.intervals import MANY, Interval, Part, interval_around
from finetune.score.rescoring import DrawnRows, rescore
from finetune.task import Task

SAMPLES, SEED = 200, 42  # of the intervals in scores.json; the defaults of finetune.config
RESAMPLES, SHUFFLES = 1_000, 2_000  # of a comparison

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sample:
    """One metric of one model: the score of each seed, and the scores of resampled examples."""

    seeds: tuple[int, ...]
    scores_S: Array
    resampled_SB: Array
    groups: int  # units of the resampling: examples, dialogues, passages

    @property
    def is_defined(self) -> bool:
        return bool(np.isfinite(self.scores_S).all() and np.isfinite(self.resampled_SB).all())


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
    task: Task, rows_by_seed: dict[int, list[Row]], groups: Sequence[str], samples: int = RESAMPLES, seed: int = SEED
) -> dict[str, Sample]:
    """For each metric the scores of all seeds, on the examples and on resampled examples.

    Args:
        rows_by_seed: rows of each training seed, for the same examples in the same order.
        groups: the group of each example.
    """
    units = len(set(groups))
    seeds = tuple(sorted(rows_by_seed))
    scores = [task.score(rows_by_seed[number]) for number in seeds]
    resampled = [rescore(task, rows_by_seed[number], draw(groups, samples, seed)) for number in seeds]
    return {
        name: Sample(
            seeds, np.array([each[name] for each in scores]), np.stack([part[name] for part in resampled]), units
        )
        for name in scores[0]
    }


def randomize(
    task: Task, pairs: Sequence[tuple[list[Row], list[Row]]], groups: Sequence[str], shuffles: int = SHUFFLES,
    seed: int = SEED,
) -> dict[str, float]:  # fmt: skip
    """The two-sided p of each metric by approximate randomization (Noreen 1989; Yeh 2000).

    In each shuffle a coin decides for each group whether the predictions of the two models are swapped, for all pairs
    of seeds alike; p is the share of shuffles whose mean difference is at least the observed one, which counts as one
    of the shuffles. The test asks whether these trained models differ on examples of this kind, not whether other
    trainings would.
    """
    group_N = number_groups(groups)
    swaps_BN = np.random.default_rng(seed).integers(2, size=(shuffles, int(group_N.max()) + 1))[:, group_N]
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
