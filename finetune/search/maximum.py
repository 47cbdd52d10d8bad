"""What the best of k trials scores on average, the figure that does not grow with the budget of whoever reports it.

Dodge et al. 2019 ("Show Your Work", arXiv 1909.03004), equation 5: of n observed scores, the expected maximum of k
drawn with replacement. It is for trials that were drawn alike and independently: random search, or a grid in random
order; the trials of TPE are not, so they have a best so far and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

MOST_TRIALS = 1_000_000  # no budget is looked for beyond


def expected_maximum(scores: Sequence[float], trials: int) -> float:
    """The mean over all ways to draw ``trials`` of the scores with replacement of the highest drawn.

    >>> expected_maximum([0.0, 10.0], 1), expected_maximum([0.0, 10.0], 2)
    (5.0, 7.5)
    """
    return float(_weights(len(scores), trials) @ np.sort(scores))


def spread_of_maximum(scores: Sequence[float], trials: int) -> float:
    """Its standard deviation over those draws."""
    sorted_N, weights_N = np.sort(scores), _weights(len(scores), trials)
    return float(np.sqrt(weights_N @ (sorted_N - weights_N @ sorted_N) ** 2))


def trials_to_reach(scores: Sequence[float], level: float) -> int | None:
    """The fewest trials whose expected maximum is at least ``level``; None where no number of them gets there."""
    low, high = 1, 1
    while expected_maximum(scores, high) < level:
        low, high = high + 1, high * 2
        if high > MOST_TRIALS:
            return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if expected_maximum(scores, middle) >= level else (middle + 1, high)
    return low


def _weights(count: int, trials: int) -> NDArray[np.float64]:
    """The chance of each of ``count`` scores, in ascending order, to be the highest of ``trials`` drawn."""
    return np.diff((np.arange(count + 1) / count) ** trials)
