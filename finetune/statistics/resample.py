"""Scores of the same resampled examples for every seed and model, and approximate randomisation between two.

Groups (a dialogue, a passage) are drawn and swapped whole. The draws are those of ``finetune.score.scores.bootstrap``
and depend on the groups and the seed alone, so two models see the same resamples: the bootstrap is a paired one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from finetune.examples import Row
from finetune.score.resampled import draw, number_groups, rescore
from finetune.score.scores import SEED
from finetune.statistics.estimate import Sample
from finetune.task import Task

RESAMPLES = 1_000
SHUFFLES = 2_000


def resample(
    task: Task, rows_by_seed: dict[int, list[Row]], groups: Sequence[str], samples: int = RESAMPLES, seed: int = SEED
) -> dict[str, Sample]:
    """Metric to the scores of all seeds, on the examples and on resampled ones.

    Args:
        rows_by_seed: training seed to rows, the same examples in the same order for each.
        groups: the group of each example.
    """
    units = len(set(groups))
    seeds = tuple(sorted(rows_by_seed))
    whole = [task.score(rows_by_seed[own]) for own in seeds]
    found = [rescore(task, rows_by_seed[own], draw(groups, samples, seed)) for own in seeds]
    return {
        name: Sample(
            seeds, np.array([scores[name] for scores in whole]), np.stack([part[name] for part in found]), units
        )
        for name in whole[0]
    }


def randomise(
    task: Task, pairs: Sequence[tuple[list[Row], list[Row]]], groups: Sequence[str], shuffles: int = SHUFFLES,
    seed: int = SEED,
) -> dict[str, float]:  # fmt: skip
    """Metric to p, two-sided: how often a difference as large comes out when each group's predictions of two models are
    swapped or not by a coin (Noreen 1989; Yeh 2000), for all pairs of seeds alike, the mean over them compared.

    It asks whether these trained models differ on examples of this kind, not whether others would. The observed
    difference counts as one of the shuffles.
    """
    group_N = number_groups(groups)
    swaps_BN = np.random.default_rng(seed).integers(2, size=(shuffles, int(group_N.max()) + 1))[:, group_N]
    totals: dict[str, NDArray[np.float64]] = {}
    whole: dict[str, float] = {}
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
            whole[name] = whole.get(name, 0.0) + observed_b[name] - observed_a[name]
    return {
        name: float("nan")
        if not np.isfinite(totals[name]).all() or not np.isfinite(whole[name])
        else (1 + int((np.abs(totals[name]) >= abs(whole[name]) - 1e-9).sum())) / (1 + shuffles)
        for name in totals
    }
