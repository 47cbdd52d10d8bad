"""Which row stands where: a stateless shuffle, so the batch of step n is known without drawing the ones before it.

Rows are permuted by a keyed Feistel network over the next power of two, walked until it lands inside (Black and
Rogaway 2002). An epoch is one pass over all rows in its own order. Nothing is stored, whatever the corpus size.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pretrain.draws import derive_key, draw_words

ROUNDS = 6  # even


def permute(index: NDArray[np.int64], size: int, key: np.uint64) -> NDArray[np.int64]:
    """The images of ``index`` (each 0 <= i < size) under the permutation of ``range(size)`` that ``key`` names."""
    bits = max(2, (size - 1).bit_length())
    keys = draw_words(key, np.arange(ROUNDS))
    out = index.astype(np.uint64)
    outside = np.arange(len(out))
    while len(outside):
        out[outside] = images = _feistel(out[outside], bits // 2, bits - bits // 2, keys)
        outside = outside[images >= size]
    return out.astype(np.int64)


def _feistel(
    words: NDArray[np.uint64], left_bits: int, right_bits: int, keys: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    """Halves of unequal width change places every round, so after an even number each is where it was."""
    masks = np.uint64((1 << left_bits) - 1), np.uint64((1 << right_bits) - 1)
    left, right = words >> np.uint64(right_bits), words & masks[1]
    for round_, key in enumerate(keys):
        left, right = right, left ^ (draw_words(key, right) & masks[round_ % 2])
    return left << np.uint64(right_bits) | right


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
