"""Intervals and tests over seeds and examples: against scipy and statsmodels, and against a truth that is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestIndPower, TTestPower

from finetune.score.significance import (
    ALPHA,
    EXAMPLES_ONLY,
    PAIRED,
    UNPAIRED,
    Difference,
    Sample,
    coupling,
    differ,
    estimate,
    holm,
    power,
    quantile,
)

EXAMPLES = 300
WEIGHTS = np.random.default_rng(7).multinomial(EXAMPLES, np.full(EXAMPLES, 1 / EXAMPLES), size=100) / EXAMPLES


def of_scores(*scores: float, first: int = 1) -> Sample:
    """Seeds whose scores do not depend on the examples."""
    seeds = tuple(range(first, first + len(scores)))
    return Sample(seeds, np.array(scores), np.tile(np.array([scores]).T, (1, 50)), 100)


def of_answers(right_SN: np.ndarray, first: int = 1) -> Sample:
    """Accuracies."""
    seeds = tuple(range(first, first + len(right_SN)))
    return Sample(seeds, 100 * right_SN.mean(axis=1), 100 * right_SN @ WEIGHTS.T, EXAMPLES)


@pytest.mark.parametrize("df", [1, 2, 2.5, 7.3, 40, 1_000, 1e6])
def test_students_t_is_that_of_scipy(df: float) -> None:
    assert quantile(df) == pytest.approx(stats.t.ppf(0.975, df), rel=1e-5)
    assert [quantile(df, p) for p in (0.9, 0.3, 0.01)] == pytest.approx(stats.t.isf([0.45, 0.15, 0.005], df), rel=1e-4)
    if df > 1:
        bar = stats.t.ppf(0.975, df)
        assert power(2.8, df, bar) == pytest.approx(stats.nct.sf(bar, df, 2.8) + stats.nct.cdf(-bar, df, 2.8), abs=1e-4)


def test_seeds_alone_are_tested_as_scipy_does(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = (80.1, 81.4, 79.2, 80.8), (81.0, 82.9, 81.1, 81.3)
    welch = differ(of_scores(*a), of_scores(*b[:3], first=10))
    monkeypatch.setattr("finetune.score.significance.coupling", lambda a, b: 1.0)
    paired = differ(of_scores(*a), of_scores(*b))
    assert paired is not None and welch is not None
    theirs, others = stats.ttest_rel(b, a), stats.ttest_ind(b[:3], a, equal_var=False)
    assert (paired.test, welch.test) == (PAIRED, UNPAIRED)
    assert (paired.p, welch.p) == pytest.approx((theirs.pvalue, others.pvalue), rel=1e-5)
    assert paired.interval == pytest.approx(tuple(theirs.confidence_interval(0.95)), rel=1e-5)
    assert welch.interval == pytest.approx(tuple(others.confidence_interval(0.95)), rel=1e-5)


def test_holm_is_that_of_statsmodels() -> None:
    values = {"a": 0.04, "b": 0.004, "c": 0.011, "d": 0.5, "e": 0.011, "f": 0.9}
    theirs = multipletests(list(values.values()), method="holm")[1]
    assert [holm(values)[name] for name in values] == pytest.approx(list(theirs))


@pytest.mark.parametrize("effect", [0.6, 1.0, 1.7])
def test_seeds_needed_are_those_of_statsmodels(effect: float) -> None:
    def needed(is_paired: bool) -> int | None:
        variance = 1.0 if is_paired else 2.0  # of a difference of two
        return Difference(effect, (0, 0), 0.2, "", variance, 0.0, is_paired, 500).seeds_needed()

    assert needed(True) == math.ceil(TTestPower().solve_power(effect, alpha=0.05, power=0.8))
    assert needed(False) == math.ceil(TTestIndPower().solve_power(effect, alpha=0.05, power=0.8))


def test_where_examples_are_too_few_no_number_of_seeds_is_promised() -> None:
    found = Difference(1.0, (0, 0), 0.2, "", 0.5, 0.5, True, 500)
    assert found.seeds_needed() is None
    assert found.examples_needed() == pytest.approx(0.5 * (1.96 + 0.8416) ** 2, rel=1e-3)
    assert Difference(3.0, (0, 0), 0.2, "", 0.5, 0.5, True, 500).seeds_needed() is not None


def crossed(rng: np.random.Generator, seeds: int, luck: float, quality: float = 0.8) -> np.ndarray:
    easy_N, noise_SN = rng.normal(size=EXAMPLES), rng.normal(size=(seeds, EXAMPLES))
    return (quality + luck * rng.normal(size=(seeds, 1)) + easy_N + noise_SN > 0).astype(float)


def covered(seeds: int, luck: float, times: int) -> float:
    """How often the interval holds the true accuracy over all seeds and examples."""
    truth = 100 * stats.norm.cdf(0.8 / math.sqrt(2 + luck**2))
    rng = np.random.default_rng(seeds)
    found = (estimate(of_answers(crossed(rng, seeds, luck)), "accuracy").interval for _ in range(times))
    return float(np.mean([low <= truth <= high for low, high in found if low <= high]))


@pytest.mark.parametrize("seeds", [3, 8])
def test_the_interval_holds_the_truth_19_times_in_20(seeds: int) -> None:
    assert 0.92 <= covered(seeds, 0.2, 250) <= 0.99  # 2.5 standard deviations of 250 draws are 0.034


@pytest.mark.matrix
@pytest.mark.parametrize("luck", [0.0, 0.05, 0.1, 0.3, 0.6])
@pytest.mark.parametrize("seeds", [2, 3, 5, 8])
def test_the_interval_holds_the_truth_for_any_share_of_the_seeds(seeds: int, luck: float) -> None:
    share = covered(seeds, luck, 1_000)
    print(f"{seeds} seeds, luck {luck}: {share:.3f}")
    assert 0.935 <= share <= (0.995 if seeds == 2 else 0.985)  # the quantile of one degree of freedom is 12.7


@pytest.mark.parametrize("groups", [3, 6])
def test_the_interval_of_one_seed_has_the_quantile_of_its_examples(groups: int) -> None:
    resampled_SB = 50 + np.random.default_rng(3).normal(size=(1, 500))
    found = estimate(Sample((1,), np.array([50.0]), resampled_SB, groups), "accuracy")
    assert found.interval is not None
    half = (found.interval[1] - found.interval[0]) / 2
    assert half == pytest.approx(stats.t.ppf(0.975, groups - 1) * resampled_SB.std(ddof=1), rel=5e-3)


def test_one_seed_has_an_interval_over_examples_and_no_spread() -> None:
    found = estimate(of_answers(crossed(np.random.default_rng(1), 1, 0.1)), "accuracy")
    reach = 196 * math.sqrt(found.mean / 100 * (1 - found.mean / 100) / EXAMPLES)
    assert found.sd is None and found.interval is not None
    assert (found.interval[1] - found.interval[0]) / 2 == pytest.approx(reach, rel=0.25)
    one = differ(of_scores(80.0), of_scores(81.0))
    assert one is not None and one.p is None and one.test == EXAMPLES_ONLY


def test_a_single_seed_is_taken_to_vary_as_several_others_do() -> None:
    found = differ(of_scores(80.0, 81.0, 82.0), of_scores(86.0, first=9))
    assert found is not None and found.value == 5.0
    assert found.interval[1] - 5.0 == pytest.approx(stats.t.ppf(0.975, 2) * math.sqrt(1 + 1 / 3))


def test_an_undefined_score_has_no_difference() -> None:
    assert differ(of_scores(80.0, math.nan), of_scores(80.0, 81.0)) is None
    assert estimate(of_scores(80.0, math.nan), "pearsonr").mean is None


def test_examples_that_both_models_find_hard_do_not_blur_their_difference() -> None:
    rng = np.random.default_rng(5)
    a = crossed(rng, 5, 0.0)
    b = np.where(rng.random(a.shape) < 0.1, 1.0, a)
    found = differ(of_answers(a), of_answers(b))
    assert found is not None and found.p is not None and found.p < 0.01
    spread = estimate(of_answers(a), "accuracy").interval or (0, 0)
    assert found.interval[1] - found.interval[0] < (spread[1] - spread[0]) / 3


def coupled_pair(
    rng: np.random.Generator, examples: int, gain: float, shared: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """The answers of two models with three seeds each, and the gain of the second in points; trainings with the same
    seed have the share ``shared`` of their luck in common."""
    seeds, luck = 3, 0.03
    easy_N, same_SN, same_S1 = (
        rng.normal(size=examples),
        rng.normal(size=(seeds, examples)),
        rng.normal(size=(seeds, 1)),
    )
    sides = []
    for more in (0.0, gain):
        likes_N = (0.0 if shared else 0.5) * rng.normal(size=examples)
        noise_SN, luck_S1 = (
            math.sqrt(shared) * same + math.sqrt(1 - shared) * rng.normal(size=same.shape)
            for same in (same_SN, same_S1)
        )
        sides.append((0.8 + more + luck * luck_S1 + easy_N + likes_N + noise_SN > 0).astype(float))
    spread = math.sqrt(2 + luck**2 + (0.0 if shared else 0.25))
    return sides[0], sides[1], 100 * (stats.norm.cdf((0.8 + gain) / spread) - stats.norm.cdf(0.8 / spread))


def test_seeds_are_paired_only_if_their_predictions_are_coupled() -> None:
    rng = np.random.default_rng(8)
    for shared, low, high in ((0.0, -0.2, 0.2), (0.95, 0.6, 1.0)):
        a, b, _ = coupled_pair(rng, EXAMPLES, 0.1, shared)
        found = differ(of_answers(a), of_answers(b))
        assert low < coupling(of_answers(a), of_answers(b)) < high
        assert found is not None and found.test == (PAIRED if shared else UNPAIRED)
    assert coupling(of_answers(a[:1]), of_answers(b[:1])) == 0.0


def found_of(times: int, gain: float, shared: float) -> tuple[float, float]:
    """The share of pairs that are called different, three seeds and 3,000 examples each, and the true difference."""
    examples, rng = 3_000, np.random.default_rng(6)
    weights = rng.multinomial(examples, np.full(examples, 1 / examples), size=200) / examples
    count = 0
    for _ in range(times):
        a, b, points = coupled_pair(rng, examples, gain, shared)
        one, other = (Sample((1, 2, 3), 100 * x.mean(axis=1), 100 * x @ weights.T, examples) for x in (a, b))
        found = differ(one, other)
        count += found is not None and found.p is not None and found.p <= ALPHA
    return count / times, points


@pytest.mark.slow
@pytest.mark.parametrize("shared", [0.0, 0.3, 0.9])
def test_three_seeds_find_a_difference_and_rarely_invent_one(shared: float) -> None:
    invented, _ = found_of(1_000, 0.0, shared)
    found, points = found_of(300, 0.118, shared)
    print(f"| {shared} | {100 * invented:.1f} | {points:+.2f} | {100 * found:.0f} |")
    assert invented <= 0.055
    assert found >= 0.55
