"""Which row stands where: a stateless shuffle, so the batch of step n is known without drawing the ones before it.

Rows are permuted by a keyed Feistel network over the next power of four, walked until it lands inside (Black and
Rogaway 2002). An epoch is one pass over all rows in its own order. Nothing is stored, whatever the corpus size.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pretrain.draws import derive_key, draw_words

ROUNDS = 6


def permute(index: NDArray[np.int64], size: int, key: np.uint64) -> NDArray[np.int64]:
    """The images of ``index`` (each 0 <= i < size) under the permutation of ``range(size)`` that ``key`` names."""
    half = np.uint64(max(1, ((size - 1).bit_length() + 1) // 2))
    keys = draw_words(key, np.arange(ROUNDS))
    out = index.astype(np.uint64)
    outside = np.ones(len(out), bool)
    while outside.any():
        out[outside] = _feistel(out[outside], half, keys)
        outside = out >= size
    return out.astype(np.int64)


def _feistel(words: NDArray[np.uint64], half: np.uint64, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    low_bits = (np.uint64(1) << half) - np.uint64(1)
    left, right = words >> half, words & low_bits
    for key in keys:
        left, right = right, left ^ (draw_words(key, right) & low_bits)
    return left << half | right


class Order:
    """The endless sequence of rows: epoch after epoch, each in its own order.

    Args:
        rows_in: number of rows of an epoch (epochs of sentence pairs differ in size).
        seed: names the order.
    """

    def __init__(self, rows_in: Callable[[int], int], seed: int) -> None:
        self._rows_in = rows_in
        self._seed = seed
        self._ends: list[int] = []  # sequences up to and including each epoch met so far

    def locate(self, sequences: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Epoch and row of each global sequence number (0 is the first sequence of the first step)."""
        while not self._ends or self._ends[-1] <= sequences.max():
            self._ends.append((self._ends[-1] if self._ends else 0) + self._rows_in(len(self._ends)))
        ends = np.array(self._ends)
        epochs = np.searchsorted(ends, sequences, side="right")
        rows = np.empty_like(sequences)
        for epoch in np.unique(epochs):
            here = epochs == epoch
            size = self._rows_in(int(epoch))
            rows[here] = permute(
                sequences[here] - (ends[epoch] - size), size, derive_key(self._seed, "order", int(epoch))
            )
        return epochs, rows
