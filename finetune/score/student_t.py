"""Student's t by quadrature: quantile, two-sided p, and the power of its test.

NumPy only, so that the slim installation can compare models; tested against scipy and statsmodels. With t = sqrt(df)
tan(x) the density of t becomes cos(x) ** (df - 1), which is smooth and lies between 0 and pi / 2.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

POINTS = 20_001
FAR = 40.0  # standard deviations, beyond which nothing is left
ALPHA = 0.05


@lru_cache(maxsize=256)
def _tail(df: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ascending x from 0, and the probability that |T| is larger than sqrt(df) tan(x)."""
    x = np.linspace(0.0, math.atan(FAR / math.sqrt(df)) if df > 30 else math.pi / 2, POINTS)
    density = np.cos(x) ** (df - 1)
    above = np.append(np.cumsum(((density[1:] + density[:-1]) / 2)[::-1])[::-1], 0.0)
    return x, above / above[0]


def two_sided(t: float, df: float) -> float:
    """The probability of |T| >= |t|."""
    x, above = _tail(df)
    return float(np.interp(math.atan(abs(t) / math.sqrt(df)), x, above))


def quantile(df: float, p: float = ALPHA) -> float:
    """The t that |T| exceeds with probability ``p``."""
    x, above = _tail(df)
    return math.sqrt(df) * math.tan(float(np.interp(p, above[::-1], x[::-1])))


def power(distance: float, df: float, bar: float) -> float:
    """The probability of |T| >= ``bar`` if the truth is ``distance`` standard errors from 0: T is a normal around
    ``distance`` over an independent root of chi-square / df, which is integrated here."""
    reach = 10 / math.sqrt(2 * df)
    root = np.linspace(max(1e-9, 1 - reach), 1 + reach, 2_001)
    log_density = (df - 1) * np.log(root) - df * root**2 / 2
    weight = np.exp(log_density - log_density.max())
    weight[[0, -1]] /= 2  # trapezoids
    found = [_above(b - distance) + _above(b + distance) for b in (bar * root).tolist()]
    return float(np.average(found, weights=weight))


def _above(z: float) -> float:
    return math.erfc(z / math.sqrt(2)) / 2
