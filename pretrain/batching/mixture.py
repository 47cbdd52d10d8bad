"""Which row comes next: the order of the rows of each source, and the mixture of several sources.

Everything is a function of the number of a sequence, so any process finds any sequence without a state. In a mixture, a
round of 65,536 sequences holds each source a fixed number of times. The bits of the place in the round are reversed
(van der Corput sequence), which spreads a source evenly: every step has its share, up to one or two sequences.

Shapes: B sequences, K sources, T turns of a round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

import numpy as np

from pretrain.batching.sources import Numbers, Rows, RowSource, Selected
from pretrain.rng import derive_key, permute

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
    """Where sequences are: number of the source, its epoch, and the row in it."""

    sources_B: Numbers
    epochs_B: Numbers
    rows_B: Numbers


class Mixture:
    """Rows of ``sources`` (by name), each as often as its rows times its weight; a single source is used as it is."""

    def __init__(
        self, sources: Mapping[str, RowSource], weights: Mapping[str, float], seed: int, first_epoch: int = 0
    ) -> None:
        self.names, self._sources = list(sources), list(sources.values())
        self._orders = [RowOrder(source.count, seed, first_epoch) for source in self._sources]
        self._sizes_K = np.array([source.count(0) for source in self._sources])
        self.rows = int(self._sizes_K.sum())  # of one epoch
        self.shares_K = self._sizes_K * np.array([weights[name] for name in self.names])
        self.shares_K /= self.shares_K.sum()
        self._counts_K = round_counts(self.shares_K)
        # of each turn of a round: its source, and how often the source had a turn before
        self._sources_T = np.searchsorted(np.cumsum(self._counts_K), _REVERSED, side="right")
        self._turns_T = np.empty_like(self._sources_T)
        for source, count in enumerate(self._counts_K):
            self._turns_T[self._sources_T == source] = np.arange(count)

    def locate(self, sequences: Numbers) -> Places:
        """The places of sequences, counted from the first sequence of this mixture."""
        if len(self._sources) == 1:
            return Places(np.zeros_like(sequences), *self._orders[0].locate(sequences))
        rounds_B, turns_B = np.divmod(sequences, _ROUND)
        places = Places(self._sources_T[turns_B], *np.empty((2, len(sequences)), np.int64))
        numbers_B = rounds_B * self._counts_K[places.sources_B] + self._turns_T[turns_B]
        for source in np.unique(places.sources_B).tolist():
            here = places.sources_B == source
            places.epochs_B[here], places.rows_B[here] = self._orders[source].locate(numbers_B[here])
        return places

    def gather(self, places: Places) -> Rows:
        numbers = np.unique(places.sources_B).tolist()
        at = [np.flatnonzero(places.sources_B == number) for number in numbers]
        first = self._sources[0]
        if isinstance(first, Selected):  # all are parts of the same rows, which are read at once
            rows_B = np.empty_like(places.rows_B)
            for number, here in zip(numbers, at, strict=True):
                rows_B[here] = cast(Selected, self._sources[number]).rows_N[places.rows_B[here]]
            return first.source.gather(places.epochs_B, rows_B)
        found = [
            self._sources[number].gather(places.epochs_B[here], places.rows_B[here])
            for number, here in zip(numbers, at, strict=True)
        ]
        return found[0] if len(found) == 1 else _joined(found, at)

    def names_of(self, places: Places) -> list[str]:
        """Epoch and row of each sequence, "0:1234", in a mixture after the source: "law:0:1234"."""
        found = [f"{epoch}:{row}" for epoch, row in zip(places.epochs_B.tolist(), places.rows_B.tolist(), strict=True)]
        if len(self.names) == 1:
            return found
        return [f"{self.names[k]}:{name}" for k, name in zip(places.sources_B.tolist(), found, strict=True)]

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


def _joined(parts: list[Rows], at: list[Numbers]) -> Rows:
    """Rows of several sources in one batch, each ``at`` its places; unused segments have length 0."""

    def join(arrays: list[Any]) -> Any:
        if arrays[0] is None:
            return None
        shape = (sum(map(len, at)), *(max(array.shape[1] for array in arrays) for _ in arrays[0].shape[1:]))
        whole = np.zeros(shape, arrays[0].dtype)
        for array, here in zip(arrays, at, strict=True):
            if array.ndim == 1:
                whole[here] = array
            else:
                whole[here, : array.shape[1]] = array
        return whole

    return Rows(*(join([part[field] for part in parts]) for field in range(len(Rows._fields))))
