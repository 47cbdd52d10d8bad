"""Mean, interval and test over seeds and examples together.

Every seed is scored on the same examples, so the variance of the mean over S seeds is a sum of two parts: the variance
between seeds / S, and the covariance of two seeds over resampled examples. An interval has half width
sqrt(sum of t^2 x variance), with Student's t for each part's own degrees of freedom (Banerjee 1961), and covers at
least 95 %. Satterthwaite's single t covered 91 to 96 % with 3 seeds, and no bootstrap of crossed rows and columns has
the right variance (McCullagh 2000; Owen 2007). Trainings with the same seed number are independent unless their
predictions show the opposite: pairing them would only cost degrees of freedom.

A score of 0 to 100 has Wilson's interval (1927) for as many examples as its variance implies: for single examples that
are right or wrong this is Wilson's interval itself, for an F1 or for dialogues its extension by the design effect. A
correlation has Fisher's z, never narrower than 1 / sqrt(n - 3). ``docs/experiments.md`` has their coverage. NumPy
alone, so that the slim installation can compare models. Legend: ``S`` seeds, ``B`` resamples.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from finetune.metrics import CORRELATIONS

ALPHA = 0.05
Z_95 = 1.959964  # standard errors on each side of a 95 % interval of a normal distribution
POINTS = 20_001  # of the quadrature of Student's t
FAR = 40.0  # standard deviations, beyond which nothing is left
MANY = 1e6  # degrees of freedom, where t is normal
POWER = 0.8
COUPLED = 0.5  # the correlation of trainings with the same seed, from which they are paired
MAX_SEEDS = 1_000
PAIRED, UNPAIRED = "t over paired seeds and examples", "t over seeds and examples"
EXAMPLES_ONLY = "randomisation over examples"
Interval = tuple[float, float]
Array = NDArray[np.float64]
Name = TypeVar("Name", bound=Hashable)


class Part(NamedTuple):
    """A part of a variance and its degrees of freedom."""

    variance: float
    df: float


def reach(parts: Sequence[Part], p: float = ALPHA) -> float:
    """Half the width of an interval (Banerjee 1961)."""
    return math.sqrt(sum(quantile(part.df, p) ** 2 * part.variance for part in parts if part.variance))


def interval_around(
    value: float, parts: Sequence[Part], units: int, metric: str = "", limits: Interval = (0.0, 100.0)
) -> Interval:
    """The 95 % interval of a score.

    Args:
        parts: the variance of the score, by source.
        units: independent examples (or dialogues, passages), which decide where the variance is 0 (100 of 100 right).
        metric: a correlation, from -100 to 100, has Fisher's z.
        limits: the range of any other metric.
    """
    variance = sum(part.variance for part in parts)
    t = reach(parts) / math.sqrt(variance) if variance else Z_95
    if metric in CORRELATIONS:
        r = max(1 / units - 1, min(value / 100, 1 - 1 / units)) if abs(value) >= 100 else value / 100
        error = max(math.sqrt(variance) / 100 / (1 - r * r), 1 / math.sqrt(max(units - 3, 1)))
        return 100 * math.tanh(math.atanh(r) - t * error), max(value, 100 * math.tanh(math.atanh(r) + t * error))
    low, width = limits[0], limits[1] - limits[0]
    p = min(max((value - low) / width, 0.0), 1.0)
    examples = p * (1 - p) * width**2 / variance if variance and 0 < p < 1 else units
    whole = 1 + t * t / examples
    middle = (p + t * t / (2 * examples)) / whole
    half = t / whole * math.sqrt(p * (1 - p) / examples + (t / (2 * examples)) ** 2)
    return low + width * max(0.0, middle - half), low + width * min(1.0, middle + half)


def variance_of(value: float, interval: Interval, metric: str) -> float:
    """The variance from which ``interval_around`` makes this interval of a score of 0 to 100 or a correlation."""
    if metric in CORRELATIONS:
        low, high = (math.atanh(max(-0.999999, min(end / 100, 0.999999))) for end in interval)
        return float(((high - low) / (2 * Z_95) * (100 - value**2 / 100)) ** 2)
    p, end = value / 100, interval[value < 50] / 100
    return float(100**2 * p * (1 - p) * (p - end) ** 2 / (Z_95**2 * end * (1 - end))) if 0 < end < 1 else 0.0


@lru_cache(maxsize=256)
def _tail(df: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ascending x from 0, and the probability that Student's |T| is larger than sqrt(df) tan(x), by quadrature.

    With t = sqrt(df) tan(x) the density of t becomes cos(x) ** (df - 1), which is smooth.
    """
    x = np.linspace(0.0, math.atan(FAR / math.sqrt(df)) if df > 30 else math.pi / 2, POINTS)
    density = np.cos(x) ** (df - 1)
    above = np.append(np.cumsum(((density[1:] + density[:-1]) / 2)[::-1])[::-1], 0.0)
    return x, above / above[0]


def quantile(df: float, p: float = ALPHA) -> float:
    """The t that |T| exceeds with probability ``p``."""
    x, above = _tail(df)
    return math.sqrt(df) * math.tan(float(np.interp(p, above[::-1], x[::-1])))


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


class Estimate(NamedTuple):
    """A mean over seeds with its 95 % interval; ``sd`` (between seeds) and ``interval`` are None if unknown."""

    mean: float | None
    sd: float | None
    interval: tuple[float, float] | None
    seeds: int


@dataclass(frozen=True, slots=True)
class Difference:
    """``b`` - ``a`` of two models on the same examples.

    Fields:
        p: two-sided, of ``test``; None with one seed each, where a randomization over examples gives it.
        seed_variance: of the difference between one more seed of each; None if neither model has two seeds.
        example_variance: what remains with any number of seeds.
    """

    value: float
    interval: tuple[float, float]
    p: float | None
    test: str
    seed_variance: float | None
    example_variance: float
    is_paired: bool
    groups: int

    def seeds_needed(self, alpha: float = ALPHA) -> int | None:
        """The number of seeds per model that detects this difference with power 0.8; None above 1,000."""
        return self._fewest_seeds(lambda seeds: self._power(seeds, alpha) >= POWER)

    def seeds_to_show(self, alpha: float = ALPHA) -> int | None:
        """The number of seeds per model with which the same difference and variances are significant; None above
        1,000."""
        return self._fewest_seeds(lambda seeds: reach(self._parts(seeds), alpha) <= abs(self.value))

    def _fewest_seeds(self, is_enough: Callable[[int], bool]) -> int | None:
        if self.seed_variance is None or not self.value:
            return None
        seeds = bisect_left(range(MAX_SEEDS + 1), True, lo=2, key=is_enough)
        return seeds if seeds <= MAX_SEEDS else None

    def examples_needed(self, alpha: float = ALPHA) -> float:
        """The factor by which the examples must grow for the same power with any number of seeds."""
        least = (quantile(MANY, alpha) + quantile(MANY, 2 - 2 * POWER)) ** 2  # of the normal distribution
        return least * self.example_variance / self.value**2 if self.value else math.inf

    def _parts(self, seeds: int) -> list[Part]:
        assert self.seed_variance is not None
        df = seeds - 1 if self.is_paired else 2 * (seeds - 1)
        return [Part(self.seed_variance / seeds, df), Part(self.example_variance, self.groups - 1)]

    def _power(self, seeds: int, alpha: float) -> float:
        parts = self._parts(seeds)
        error = math.sqrt(sum(part.variance for part in parts))
        return power(abs(self.value) / error, _whole_df(parts), reach(parts, alpha) / error) if error else 1.0


def estimate(sample: Sample, metric: str) -> Estimate:
    """Mean and interval, cut to the range of the metric; over the examples alone if there is one seed."""
    count = len(sample.seeds)
    if not np.isfinite(sample.scores_S).all():
        return Estimate(None, None, None, count)
    mean = float(sample.scores_S.mean())
    sd = float(np.std(sample.scores_S, ddof=1)) if count > 1 else None
    if not sample.is_defined:
        return Estimate(mean, sd, None, count)
    parts = _parts(sample.scores_S, sample.resampled_SB, sample.groups)
    return Estimate(mean, sd, interval_around(mean, parts, sample.groups, metric), count)


def differ(a: Sample, b: Sample) -> Difference | None:
    """``b`` - ``a``, tested over seeds and examples; None if a score is undefined.

    The variances of both sides add up (Welch), and a model with one seed is assumed to vary as the other. Only if the
    same seeds of both sides are coupled (as one training that is decoded in two ways), they are paired: a single sample
    of differences. With one seed each, the interval is over examples, and ``p`` is left to a randomization.
    """
    if not a.is_defined or not b.is_defined:
        return None
    is_paired = a.seeds == b.seeds and coupling(a, b) >= COUPLED
    value, groups = float(b.scores_S.mean() - a.scores_S.mean()), min(a.groups, b.groups)
    seed_variance = None
    if is_paired or len(a.seeds) == len(b.seeds) == 1:
        difference_S = b.scores_S - a.scores_S
        parts = _parts(difference_S, b.resampled_SB - a.resampled_SB, groups)
        if len(difference_S) > 1:
            seed_variance = float(np.var(difference_S, ddof=1))
    else:
        variances = [float(np.var(x.scores_S if len(x.seeds) > 1 else y.scores_S, ddof=1)) for x, y in ((a, b), (b, a))]
        seed_variance = sum(variances)
        parts = [_welch(variances, (len(a.seeds), len(b.seeds))), Part(_shared_unpaired(a, b), groups - 1)]
    far = reach(parts)
    p = None if seed_variance is None else p_of(value, parts)
    test = EXAMPLES_ONLY if p is None else PAIRED if is_paired else UNPAIRED
    interval = (value - far, value + far)
    return Difference(value, interval, p, test, seed_variance, parts[-1].variance, is_paired, groups)


def p_of(value: float, parts: Sequence[Part]) -> float:
    """The p at which the interval just ends at 0, by bisection of its logarithm."""
    if not value or not any(part.variance for part in parts):
        return float(not value)
    low, high = -30.0, 0.0  # powers of ten
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if reach(parts, 10**middle) > abs(value) else (low, middle)
    return float(10**high)


def _parts(scores_S: Array, resampled_SB: Array, groups: int) -> list[Part]:
    """The variance of the mean over seeds, and, last, the variance that the examples cause in all seeds alike."""
    examples, seeds = Part(_shared(resampled_SB), groups - 1), len(scores_S)
    return [Part(float(np.var(scores_S, ddof=1)) / seeds, seeds - 1), examples] if seeds > 1 else [examples]


def _shared(resampled_SB: Array) -> float:
    """The variance that resampled examples cause in all seeds alike; of a single seed all its variance."""
    seeds, covariance_SS = len(resampled_SB), np.atleast_2d(np.cov(resampled_SB))
    if seeds == 1:
        return float(covariance_SS[0, 0])
    return max(0.0, float(covariance_SS.sum() - np.trace(covariance_SS)) / (seeds * (seeds - 1)))


def _shared_unpaired(a: Sample, b: Sample) -> float:
    """The variance that the examples cause in the difference of unpaired seeds."""
    across = np.cov(np.vstack([a.resampled_SB, b.resampled_SB]))[: len(a.seeds), len(a.seeds) :]
    return max(0.0, _shared(a.resampled_SB) + _shared(b.resampled_SB) - 2 * float(across.mean()))


def coupling(a: Sample, b: Sample) -> float:
    """The correlation of two trainings with the same seed, -1..1: what same seeds share of the examples' effects beyond
    what other seeds share, relative to what is a training's own. It comes from the resampled examples, not from the few
    means, so that the choice of the test does not depend on the difference that it tests."""
    seeds = len(a.seeds)
    if seeds == 1:
        return 0.0
    across_SS = np.cov(np.vstack([a.resampled_SB, b.resampled_SB]))[:seeds, seeds:]
    same, all_pairs = float(np.trace(across_SS)), float(across_SS.sum())
    own = [float(np.var(x.resampled_SB, axis=1, ddof=1).mean()) - _shared(x.resampled_SB) for x in (a, b)]
    scale = math.sqrt(max(own[0], 0.0) * max(own[1], 0.0))
    return (same / seeds - (all_pairs - same) / (seeds * (seeds - 1))) / scale if scale else 0.0


def _welch(variances: Sequence[float], seeds: Sequence[int]) -> Part:
    """The seeds of two models as one part; if one has a single seed, its variance is the other's."""
    parts = [Part(variance / count, count - 1) for variance, count in zip(variances, seeds, strict=True)]
    df = max(seeds) - 1 if min(seeds) == 1 else _whole_df(parts)
    return Part(sum(part.variance for part in parts), df)


def _whole_df(parts: Sequence[Part]) -> float:
    """Welch's and Satterthwaite's degrees of freedom of a sum."""
    squares = sum(part.variance**2 / part.df for part in parts)
    return float(sum(part.variance for part in parts) ** 2 / squares) if squares else parts[0].df


def holm(values: Mapping[Name, float]) -> dict[Name, float]:
    """Adjusted p, so that all tests together claim a false difference in at most 5 of 100 experiments (Holm 1979)."""
    adjusted: dict[Name, float] = {}
    highest = 0.0
    for rank, (name, p) in enumerate(sorted(values.items(), key=lambda item: item[1])):
        highest = max(highest, min(1.0, p * (len(values) - rank)))
        adjusted[name] = highest
    return adjusted


def power(distance: float, df: float, bar: float) -> float:
    """The probability of |T| >= ``bar`` if the truth is ``distance`` standard errors from 0: T is a normal around
    ``distance`` over an independent root of chi-square / df, which is integrated here."""
    reach = 10 / math.sqrt(2 * df)
    root = np.linspace(max(1e-9, 1 - reach), 1 + reach, 2_001)
    log_density = (df - 1) * np.log(root) - df * root**2 / 2
    weight = np.exp(log_density - log_density.max())
    weight[[0, -1]] /= 2  # trapezoids
    powers = [_above(b - distance) + _above(b + distance) for b in (bar * root).tolist()]
    return float(np.average(powers, weights=weight))


def _above(z: float) -> float:
    return math.erfc(z / math.sqrt(2)) / 2
