"""The expected maximum over k trials, held against drawing them."""

from __future__ import annotations

import random
from itertools import product
from statistics import fmean, pstdev

import pytest

from finetune.search.maximum import expected_maximum, spread_of_maximum, trials_to_reach

SCORES = [61.2, 40.0, 55.5, 61.2, 12.0]


@pytest.mark.parametrize("trials", [1, 2, 4])
def test_it_is_the_mean_over_all_ways_to_draw(trials: int) -> None:
    highest = [max(drawn) for drawn in product(SCORES, repeat=trials)]
    assert expected_maximum(SCORES, trials) == pytest.approx(fmean(highest))
    assert spread_of_maximum(SCORES, trials) == pytest.approx(pstdev(highest))


def test_it_agrees_with_slow_resampling() -> None:
    rng = random.Random(7)
    scores = [rng.gauss(60, 8) for _ in range(40)]
    drawn = [max(rng.choices(scores, k=10)) for _ in range(20_000)]
    assert expected_maximum(scores, 10) == pytest.approx(fmean(drawn), abs=4 * pstdev(drawn) / 20_000**0.5)


def test_the_budget_for_a_level_is_the_first_that_reaches_it() -> None:
    for level in (30.0, 46.0, 55.0, 61.0):
        trials = trials_to_reach(SCORES, level)
        assert trials is not None and expected_maximum(SCORES, trials) >= level
        assert trials == 1 or expected_maximum(SCORES, trials - 1) < level
    assert trials_to_reach(SCORES, 61.3) is None
