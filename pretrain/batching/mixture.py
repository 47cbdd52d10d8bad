"""Which row comes next: the order of the rows of each source, and the mixture of several sources.

Everything is a function of the number of a sequence, so any process finds any sequence without a state. In a mixture, a
round of 65,536 sequences holds each source a fixed number of times. The bits of the place in the round are reversed
(van der Corput sequence), which spreads a source evenly: every step has its share, up to one or two sequences.

Shapes: B sequences, K sources, T turns of a round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from pretrain.batching.sources import Numbers, Rows, RowSource
from pretrain.rng import derive_key, permute, random_bits

ROUND_BITS = 16
EVERYTHING = ""  # name of a source that is the full corpus
_ROUND = 1 << ROUND_BITS
_REVERSED = np.array([int(f"{place:0{ROUND_BITS}b}"[::-1], 2) for place in range(_ROUND)])


class RowOrder:
    """The endless sequence of rows: epoch after epoch, each in its own order. Epochs of pairs differ in size."""

    def __init__(self, rows_in: Callable[[int], int], seed: int, first_epoch: int = 0) -> None:
        self._rows_in, self._seed, self._first_epoch = rows_in, seed, first_epoch
        self._ends: list[int] = []  # sequences up to and including each epoch so far

    def locate(self, sequences: Numbers) -> tuple[Numbers, Numbers]:
        """Epoch and row of each global sequence number (0 is the first sequence of the first step)."""
        while not self._ends or self._ends[-1] <= sequences.max():
            size = self._rows_in(self._first_epoch + len(self._ends))
            self._ends.append((self._ends[-1] if self._ends else 0) + size)
        ends = np.array(self._ends)
        epochs = np.searchsorted(ends, sequences, side="right") + self._first_epoch
        rows = np.empty_like(sequences)
        for epoch in np.unique(epochs).tolist():
            here, size = epochs == epoch, self._rows_in(epoch)
            begin = ends[epoch - self._first_epoch] - size
            rows[here] = permute(sequences[here] - begin, size, derive_key(self._seed, "order", epoch))
        return epochs, rows


class Places(NamedTuple):
    """Where sequences are: number of the source, its epoch, and the row among those of all sources."""

    sources_B: Numbers
    epochs_B: Numbers
    rows_B: Numbers


class Mixture:
    """Rows by source, each source as often as its rows times its weight; a single source is used as it is.

    ``sizes``: how many of the ``rows`` each source has, by name; those of a source follow each other.
    """

    def __init__(
        self, rows: RowSource, sizes: Mapping[str, int], weights: Mapping[str, float], seed: int, first_epoch: int = 0
    ) -> None:
        self.names, self._source, self._first_epoch = list(sizes), rows, first_epoch
        self._order = RowOrder(rows.count, seed, first_epoch)  # of a single source
        self._keys_K = np.array([derive_key(seed, "order of source", name) for name in sizes])
        self._sizes_K = np.array(list(sizes.values()))
        self._firsts_K = np.cumsum(self._sizes_K) - self._sizes_K
        self.rows = int(self._sizes_K.sum())  # of one epoch
        self.shares_K = self._sizes_K * np.array([weights[name] for name in sizes])
        self.shares_K /= self.shares_K.sum()
        self._counts_K = round_counts(self.shares_K)
        # of each turn of a round: its source, and how often the source had a turn before
        self._sources_T = np.searchsorted(np.cumsum(self._counts_K), _REVERSED, side="right")
        self._turns_T = np.empty_like(self._sources_T)
        for source, count in enumerate(self._counts_K):
            self._turns_T[self._sources_T == source] = np.arange(count)

    def locate(self, sequences: Numbers) -> Places:
        """The places of sequences, counted from the first sequence of this mixture."""
        if len(self.names) == 1:
            return Places(np.zeros_like(sequences), *self._order.locate(sequences))
        rounds_B, turns_B = np.divmod(sequences, _ROUND)
        sources_B = self._sources_T[turns_B]
        sizes_B = self._sizes_K[sources_B]
        numbers_B = rounds_B * self._counts_K[sources_B] + self._turns_T[turns_B]
        epochs_B = self._first_epoch + numbers_B // sizes_B
        keys_B = random_bits(self._keys_K[sources_B], epochs_B)
        rows_B = permute(numbers_B % sizes_B, sizes_B, keys_B)
        return Places(sources_B, epochs_B, self._firsts_K[sources_B] + rows_B)

    def gather(self, places: Places) -> Rows:
        return self._source.gather(places.epochs_B, places.rows_B)

    def names_of(self, places: Places) -> list[str]:
        """Epoch and row of each sequence, "0:1234", in a mixture after the source: "law:0:1234"."""
        rows_B = places.rows_B - self._firsts_K[places.sources_B]
        row_names = [f"{epoch}:{row}" for epoch, row in zip(places.epochs_B.tolist(), rows_B.tolist(), strict=True)]
        if len(self.names) == 1:
            return row_names
        return [f"{self.names[k]}:{name}" for k, name in zip(places.sources_B.tolist(), row_names, strict=True)]

    def epochs_of(self, name: str, sequences: int) -> float:
        """Passes over the rows of one source; without a mixture, each source has those of all rows."""
        speeds = dict(zip(self.names, (self.shares_K / self._sizes_K).tolist(), strict=True))
        return sequences * float(speeds.get(EVERYTHING, speeds.get(name, 0.0)))


def round_counts(shares_K: np.ndarray) -> Numbers:
    """Sequences of each source in a round: the shares by largest remainders, and at least one.

    >>> round_counts(np.array([0.5, 0.25, 0.25])).tolist()
    [32768, 16384, 16384]
    """
    exact_K = shares_K * _ROUND
    counts_K = np.maximum(exact_K.astype(np.int64), 1)
    missing = _ROUND - int(counts_K.sum())
    counts_K[np.argsort(counts_K - exact_K, kind="stable")[: max(missing, 0)]] += 1
    counts_K[counts_K.argmax()] += min(missing, 0)
    return counts_K
