"""95 % confidence intervals by bootstrap over sentences.

Words of one sentence are similar, so resampling words would give intervals that are too narrow. In a long text, at most
``MAX_BLOCKS`` runs of neighboring sentences are drawn. All tokenizers are measured on the same draws. The intervals do
not cover other kinds of text.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MAX_BLOCKS = 4096
RESAMPLES = 1000
LIMITS = (0.025, 0.975)
SEED = 1

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Interval = tuple[float, float]


class Sample(NamedTuple):
    """Counts of eojeols (by number) in blocks of neighboring sentences; one array entry per eojeol and block."""

    eojeol: Integers
    block: Integers
    times: Integers
    blocks: int

    def counts(self, eojeols: int) -> Integers:
        """Counts of each of N eojeols in all blocks."""
        return _add_up(self.eojeol, self.times, eojeols).astype(np.int64)

    def sums(self, each: Integers) -> Floats:
        """Sums of each block, [blocks, figures]; ``each``: figures of one occurrence, [eojeols, figures]."""
        columns = [_add_up(self.block, self.times * column[self.eojeol], self.blocks) for column in each.T]
        return np.stack(columns, axis=1)


def _add_up(places: Integers, values: Integers, size: int) -> Floats:
    return np.bincount(places, weights=values, minlength=size).astype(np.float64)  # exact below 2^53


def make_sample(sentences: Integers, eojeols: Integers) -> Sample:
    """A sample of words in text order, from the numbers of their sentences (ascending) and eojeols."""
    if not len(sentences):
        return Sample(sentences, eojeols, eojeols, 0)
    rank = np.cumsum(np.diff(sentences, prepend=sentences[0]) > 0)  # sentences without a word do not count
    number = int(rank[-1]) + 1
    blocks = min(number, MAX_BLOCKS)
    kinds = int(eojeols.max()) + 1
    pairs, count = np.unique(rank * blocks // number * kinds + eojeols, return_counts=True)
    return Sample(pairs % kinds, pairs // kinds, count.astype(np.int64), blocks)


def resample(sums: Floats, number: int = 0) -> Floats:
    """Bootstrap sums over blocks, [RESAMPLES, figures]; NaN for fewer than two blocks. ``number``: of the text."""
    if len(sums) < 2:
        return np.full((RESAMPLES, sums.shape[1]), np.nan)
    drawn: Floats = _draws(len(sums), number).astype(np.float64) @ sums
    return drawn


@lru_cache(maxsize=32)
def _draws(blocks: int, number: int) -> NDArray[np.uint8]:
    """How often each block is drawn, [RESAMPLES, blocks]."""
    rng = np.random.default_rng((SEED, number))
    rows = (np.bincount(rng.integers(0, blocks, blocks), minlength=blocks) for _ in range(RESAMPLES))
    return np.stack([row.astype(np.uint8) for row in rows])


def interval(values: Floats) -> Interval | None:
    """The middle 95 % of the values, without NaN; None if there are no others."""
    known = values[~np.isnan(values)]
    if not len(known):
        return None
    low, high = np.quantile(known, LIMITS).tolist()
    return low, high
