"""Unmasked training rows of the token store: full blocks (FULL-SENTENCES of RoBERTa), or one document a row.

Blocks are cut every ``length - 2`` pieces from the corpus as one stream with a separator after each document. Shorter
blocks are cut from the same long ones, so the same text is held out at both lengths.

Shapes: B rows, L positions, S segments (documents or sentence pairs) of a row, N segments, D documents.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from pretrain.pack.store import TokenStore
from pretrain.rng import permute

Numbers = NDArray[np.int64]
ROWS_AT_ONCE = 1 << 20  # rows: bounds the memory for computing all lengths


class Rows(NamedTuple):
    """Rows before masking, padded with [PAD] after the last segment."""

    ids_BL: Numbers
    names_B: Numbers  # seeds the masks: the same name and epoch give the same mask
    lengths_BS: Numbers | None = None  # tokens of each segment, special ones counted, then zeros; None: one of L tokens
    types_BL: Numbers | None = None  # 0 for A, 1 for B; None where there are no pairs
    is_random_BS: Numbers | None = None  # 1 where B does not follow A, -100 for unused segments; None without pairs
    units_BL: NDArray[np.bool_] | None = None  # where eojeols begin; None: words, identified by their pieces

    @property
    def tokens_B(self) -> Numbers:  # noqa: N802
        if self.lengths_BS is None:
            return np.full(len(self.ids_BL), self.ids_BL.shape[1])
        return self.lengths_BS.sum(axis=1)


class RowSource(Protocol):
    """Rows by epoch and number."""

    def count(self, epoch: int) -> int:
        """Number of rows of an epoch."""

    def gather(self, epochs_B: Numbers, rows_B: Numbers) -> Rows:
        """The requested rows, in that order."""

    def sources(self, epoch: int, rows_B: Numbers) -> Numbers:
        """Number of the source (``TokenStore.source_names``) in which each row begins."""


class Blocks:
    """Blocks of ``length`` tokens, cut out of long blocks of ``long_length`` tokens of the store.

    ``first``, ``stop``: range of the long blocks in the permutation that ``key`` names. ``unit``: of masking.
    """

    def __init__(
        self, store: TokenStore, length: int, long_length: int, first: int, stop: int, key: np.uint64, unit: str
    ) -> None:
        self._store, self._unit, self._key = store, unit, key
        self._pieces, self._long_pieces = length - 2, long_length - 2
        self._inside = self._long_pieces // self._pieces  # short blocks of a long one
        self._first, self._total = first, total_blocks(store, long_length)
        self._count = (stop - first) * self._inside
        self._chosen_N: NDArray[np.unsignedinteger] | None = None  # None: all rows

    def only(self, rows_N: Numbers) -> Blocks:
        """Some of the rows, in this order."""
        other = copy(self)
        other._chosen_N = rows_N.astype(np.min_scalar_type(rows_N.max(initial=0)))
        return other

    def count(self, epoch: int) -> int:
        return self._count if self._chosen_N is None else len(self._chosen_N)

    def gather(self, epochs_B: Numbers, rows_B: Numbers) -> Rows:
        begins_B = self._begins(rows_B)
        special_ids = self._store.meta["special_ids"]
        ids_BL = np.empty((len(rows_B), self._pieces + 2), np.int64)
        ids_BL[:, 0], ids_BL[:, -1] = special_ids["cls"], special_ids["sep"]
        ids_BL[:, 1:-1] = self._store.ids(sliding_window_view(self._store.tokens, self._pieces)[begins_B])
        if self._unit == "word":
            return Rows(ids_BL, begins_B)
        starts_BL = self._store.unit_starts(begins_B[:, None] + np.arange(self._pieces), self._unit)
        return Rows(ids_BL, begins_B, units_BL=None if starts_BL is None else np.pad(starts_BL, ((0, 0), (1, 1))))

    def sources(self, epoch: int, rows_B: Numbers) -> Numbers:
        return self._store.sources_at(self._begins(rows_B))

    def _begins(self, rows_B: Numbers) -> Numbers:
        if self._chosen_N is not None:
            rows_B = self._chosen_N[rows_B].astype(np.int64)
        long_B = permute(self._first + rows_B // self._inside, self._total, self._key)
        return long_B * self._long_pieces + rows_B % self._inside * self._pieces


class Documents:
    """Chosen documents (their numbers) as rows of one segment, [CLS] pieces [SEP], padded to ``length``.

    A long document is cut into full parts and a rest. A rest of less than an eighth of a row takes pieces from the part
    before, so that masks have enough context: in rows of 16 tokens, 29 pieces become 14 + 13 + 2.
    """

    def __init__(self, store: TokenStore, documents: Numbers, length: int, unit: str) -> None:
        self._store, self._documents, self._length, self._unit = store, documents, length, unit
        parts_D = -(-self._pieces(np.arange(len(documents))) // (length - 2))
        self.first_row = np.concatenate([[0], np.cumsum(parts_D)])  # of each document, then the number of rows

    def count(self, epoch: int) -> int:
        return int(self.first_row[-1])

    def lengths(self, epoch: int) -> NDArray[np.integer]:
        return self._lengths

    def gather(self, epochs_B: Numbers, rows_B: Numbers) -> Rows:
        begins_B, ends_B = self._stretches(rows_B)
        pieces_B, row_B = ends_B - begins_B, np.arange(len(rows_B))
        at, places = runs(row_B * self._length + 1, pieces_B), runs(begins_B, pieces_B)
        ids_BL, units_BL = fill_rows(self._store, self._unit, (len(rows_B), self._length), at, places)
        ids_BL[:, 0] = self._store.meta["special_ids"]["cls"]
        ids_BL[row_B, pieces_B + 1] = self._store.meta["special_ids"]["sep"]
        return Rows(ids_BL, begins_B, (pieces_B + 2)[:, None], units_BL=units_BL)

    def sources(self, epoch: int, rows_B: Numbers) -> Numbers:
        return self._store.sources_at(self._stretches(rows_B)[0])

    @cached_property
    def _lengths(self) -> NDArray[np.uint16]:
        lengths = np.empty(self.count(0), np.uint16)
        for begin in range(0, len(lengths), ROWS_AT_ONCE):
            begins, ends = self._stretches(np.arange(begin, min(begin + ROWS_AT_ONCE, len(lengths))))
            lengths[begin : begin + ROWS_AT_ONCE] = ends - begins + 2
        return lengths

    def _pieces(self, places_B: Numbers) -> Numbers:
        """Pieces of the documents at some places of the list, without their separators."""
        numbers_B = self._documents[places_B]
        return self._store.documents[numbers_B + 1] - self._store.documents[numbers_B] - 1

    def _stretches(self, rows_B: Numbers) -> tuple[Numbers, Numbers]:
        """Begin and end of the pieces of rows in the store."""
        places_B = np.searchsorted(self.first_row, rows_B, side="right") - 1
        part_B = rows_B - self.first_row[places_B]
        is_last_B = rows_B == self.first_row[places_B + 1] - 1
        pieces_B, max_pieces = self._pieces(places_B), self._length - 2
        full_B = (pieces_B - 1) // max_pieces * max_pieces
        rest_B = np.maximum(np.minimum(full_B, pieces_B - self._length // 8), 0)  # where the last part begins
        begins_B = np.where(is_last_B, rest_B, part_B * max_pieces)
        ends_B = np.where(is_last_B, pieces_B, np.minimum(begins_B + max_pieces, rest_B))
        offsets_B = self._store.documents[self._documents[places_B]]
        return offsets_B + begins_B, offsets_B + ends_B


def total_blocks(store: TokenStore, length: int) -> int:
    """Full blocks in the store."""
    return len(store.tokens) // (length - 2)


def runs(begins_N: Numbers, lengths_N: Numbers) -> Numbers:
    """The numbers begin, begin + 1, … of every run, concatenated.

    >>> runs(np.array([10, 40]), np.array([3, 2])).tolist()
    [10, 11, 12, 40, 41]
    """
    shifts_N = begins_N - (np.cumsum(lengths_N) - lengths_N)
    return np.repeat(shifts_N, lengths_N) + np.arange(int(lengths_N.sum()))


def fill_rows(
    store: TokenStore, unit: str, shape: tuple[int, int], at: Numbers, places: Numbers
) -> tuple[Numbers, NDArray[np.bool_] | None]:
    """Rows of [PAD], filled ``at`` positions with the pieces at ``places`` of the store, and ``Rows.units_BL``."""
    ids_BL = np.full(shape, store.meta["special_ids"]["pad"], np.int64)
    ids_BL.reshape(-1)[at] = store.ids(store.tokens[places])
    starts = store.unit_starts(places, unit)
    if starts is None:
        return ids_BL, None
    units_BL = np.zeros(shape, bool)
    units_BL.reshape(-1)[at] = starts
    return ids_BL, units_BL
