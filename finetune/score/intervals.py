"""Student's t, and the 95 % interval of a score from its variance.

A score of 0 to 100 has Wilson's interval (1927) for as many examples as its variance implies: for single examples that
are right or wrong this is Wilson's interval itself, for an F1 or for dialogues its extension by the design effect. A
correlation has Fisher's z, never narrower than 1 / sqrt(n - 3). Both stay within the range and are never empty. From 50
examples on they cover 94 to 96 %, correlations of errors with heavy tails 92 % (docs/experiments.md). Score ± 1.96
standard errors covered as little as 85 %, and BCa, with five times the resamples, 90 to 96.5 %. NumPy alone, so that
the slim installation can compare models.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from finetune.metrics import CORRELATIONS

ALPHA = 0.05
Z_95 = 1.959964  # standard errors on each side of a 95 % interval of a normal distribution
POINTS = 20_001  # of the quadrature of Student's t
FAR = 40.0  # standard deviations, beyond which nothing is left
MANY = 1e6  # degrees of freedom, where t is normal
Interval = tuple[float, float]


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
