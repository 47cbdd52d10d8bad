"""Several documents or sentence pairs in one row.

Rows are filled by best fit on the histogram of lengths (Krell et al. 2021, arXiv 2107.02027, longest-pack-first): the
longest first, each into the fullest row that still holds it. Which segment takes which place of its length is shuffled
anew every epoch; the price is that a process keeps a list of all segments, 6 bytes each, and 8 bytes a row.

Shapes: B rows, L positions, S segments of a row, N segments.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pretrain.batching.masking import IGNORED
from pretrain.batching.sources import Numbers, Rows, RowSource, runs
from pretrain.rng import permute, random_bits

# A row is closed at so many times the mean number of segments, at least at so many: every row of a batch pays for the
# segments of the fullest one, and without a limit the shortest documents would meet in the last rows; at 4, geometric
# and log-normal lengths still fill 98 to 99 %
_MEANS, _LEAST_LIMIT = 4, 8
_AT_ONCE = 1 << 20  # segments: bounds the memory of laying out an epoch


class Segments(RowSource, Protocol):
    """Rows of one segment, whose lengths are known before they are read: ``Documents``, ``Pairs``."""

    def lengths(self, epoch: int) -> NDArray[np.integer]:
        """Tokens of every row of an epoch, special pieces counted."""


class Kind(NamedTuple):
    """Rows filled alike: how many, and the lengths of their segments, longest first."""

    rows: int
    lengths: tuple[int, ...]


class Packed:
    """Several segments of a source, padded to ``length``, in each row; every segment stands in one row of an epoch.

    ``key`` names the shuffles; after ``repeat`` epochs they repeat, for masks that are to repeat (None: never).
    """

    def __init__(self, source: Segments, length: int, key: np.uint64, repeat: int | None = None) -> None:
        self._source, self._length, self._key, self._repeat = source, length, key, repeat
        self._kinds = lru_cache(maxsize=64)(self._fill)
        self._rows = lru_cache(maxsize=2)(self._deal)

    def count(self, epoch: int) -> int:
        return sum(kind.rows for kind in self._kinds(self._pass(epoch)))

    def gather(self, epochs_B: Numbers, rows_B: Numbers) -> Rows:
        segments_BS, lengths_BS = self._segments(epochs_B, rows_B)
        row_N, column_N = at = np.nonzero(lengths_BS)
        segments = self._source.gather(epochs_B[row_N], segments_BS[at])
        lengths_N = lengths_BS[at]
        assert segments.lengths_BS is not None and np.array_equal(segments.lengths_BS[:, 0], lengths_N)
        begins_N = (np.cumsum(lengths_BS, axis=1) - lengths_BS)[at]
        read = runs(np.arange(len(row_N)) * self._length, lengths_N)
        write = runs(row_N * self._length + begins_N, lengths_N)

        def join(field_NL: NDArray, fill: int) -> NDArray:
            joined_BL = np.full((len(rows_B), self._length), fill, field_NL.dtype)
            joined_BL.reshape(-1)[write] = field_NL.reshape(-1)[read]
            return joined_BL

        pad_id = segments.ids_BL[lengths_N.argmin(), -1]  # where the shortest has no padding, no row will have any
        is_random_BS = None
        if segments.is_random_BS is not None:
            is_random_BS = np.full(lengths_BS.shape, IGNORED, np.int64)
            is_random_BS[at] = segments.is_random_BS[:, 0]
        return Rows(
            join(segments.ids_BL, pad_id),
            segments.names_B[column_N == 0],
            lengths_BS,
            None if segments.types_BL is None else join(segments.types_BL, 0),
            is_random_BS,
            None if segments.units_BL is None else join(segments.units_BL, 0),
        )

    def sources(self, epoch: int, rows_B: Numbers) -> Numbers:
        begins, segments, _ = self._rows(self._pass(epoch))
        return self._source.sources(epoch, segments[begins[rows_B]].astype(np.int64))

    def _segments(self, epochs_B: Numbers, rows_B: Numbers) -> tuple[Numbers, Numbers]:
        """Numbers and lengths of the segments of rows, in the order of the row, then zeros; both B x S."""
        passes_B = epochs_B if self._repeat is None else epochs_B % self._repeat
        passes = np.unique(passes_B).tolist()
        width = max((len(kind.lengths) for number in passes for kind in self._kinds(number)), default=1)
        segments_BS, lengths_BS = np.zeros((2, len(rows_B), width), np.int64)
        for number in passes:
            begins, segments, lengths = self._rows(number)
            here = np.flatnonzero(passes_B == number)
            first_B = begins[rows_B[here]]
            counts_B = begins[rows_B[here] + 1] - first_B
            at = np.repeat(here, counts_B), runs(np.zeros_like(counts_B), counts_B)
            places_N = runs(first_B, counts_B)
            segments_BS[at], lengths_BS[at] = segments[places_N], lengths[places_N]
        return segments_BS, lengths_BS

    def _pass(self, epoch: int) -> int:
        return epoch if self._repeat is None else epoch % self._repeat

    def _fill(self, number: int) -> list[Kind]:
        histogram = np.bincount(self._source.lengths(number), minlength=self._length + 1)
        tokens = int(histogram @ np.arange(len(histogram)))
        mean = -(-int(histogram.sum()) * self._length // max(1, tokens))
        return pack_histogram(histogram.tolist(), self._length, max(_LEAST_LIMIT, _MEANS * mean))

    def _deal(self, number: int) -> tuple[Numbers, NDArray[np.unsignedinteger], NDArray[np.uint16]]:
        """Where the segments of each row begin (then their number), and all segments and their lengths, row after row.

        Rows of 3 + 2 + 2 tokens take the next segment of 3 tokens and the next two of 2, out of a shuffled list.
        """
        kinds, lengths_N = self._kinds(number), self._source.lengths(number).astype(np.uint16)
        key = random_bits(self._key, np.array([number]))[0]
        segments_N = np.empty(len(lengths_N), np.min_scalar_type(len(lengths_N)))
        for begin in range(0, len(lengths_N), _AT_ONCE):
            end = min(begin + _AT_ONCE, len(lengths_N))
            segments_N[begin:end] = permute(np.arange(begin, end), len(lengths_N), key)
        segments_N = segments_N[np.argsort(lengths_N[segments_N], kind="stable")]  # 16 bits are sorted in linear time
        histogram = np.bincount(lengths_N, minlength=self._length + 1)
        place = (np.cumsum(histogram) - histogram).tolist()  # of the next segment of each length
        parts = []
        for rows, lengths in kinds:
            columns = []
            for size, count in Counter(lengths).items():
                columns.append(segments_N[place[size] : place[size] + rows * count].reshape(rows, count))
                place[size] += rows * count
            parts.append(np.hstack(columns).reshape(-1))
        counts = np.repeat([len(kind.lengths) for kind in kinds], [kind.rows for kind in kinds])
        row_lengths = np.concatenate([np.tile(np.array(kind.lengths, np.uint16), kind.rows) for kind in kinds])
        return np.append(0, np.cumsum(counts)), np.concatenate(parts), row_lengths


def pack_histogram(histogram: list[int], length: int, most_segments: int) -> list[Kind]:
    """Fill rows of ``length`` tokens with ``histogram[n]`` segments of n tokens; a row of ``most_segments`` is closed.

    Segments A to F, the longest first, each into the fullest row of 8 tokens that still holds it:

        A A A A A A D D    A begins a row, B another; C fills that of B, D that of A
        B B B B B C C C
        E E F . . . . .    E finds both full and begins a third, which holds F as well

    >>> lengths = [6, 5, 3, 2, 2, 1]
    >>> [kind.lengths for kind in pack_histogram(np.bincount(lengths, minlength=9).tolist(), 8, 4)]
    [(5, 3), (6, 2), (2, 1)]

    A million times as many segments make hardly more kinds, each of a million times as many rows.
    """
    open_rows: list[list[Kind]] = [[] for _ in range(length + 1)]  # by the space left in them
    for size in range(length, 0, -1):
        left = histogram[size]
        for space in range(size, length):  # the fullest first
            if left and open_rows[space]:
                left = _place(open_rows, space, size, left, most_segments)
        if left:
            together = min(length // size, most_segments)
            open_rows[length].append(Kind(-(-left // together), ()))
            _place(open_rows, length, size, left, most_segments)
    return [kind for kinds in open_rows for kind in kinds]


def _place(open_rows: list[list[Kind]], space: int, size: int, left: int, most_segments: int) -> int:
    """Put up to ``left`` segments into the rows with ``space``; returns how many found no place."""
    kinds, open_rows[space] = open_rows[space], []
    for rows, lengths in kinds:
        together = min(space // size, most_segments - len(lengths))
        filled = min(rows, left // together) if together else 0
        last = min(together, left - filled * together) if filled < rows else 0  # of one row that is not filled up
        shares = ((filled, together), (int(last > 0), last), (rows - filled - (last > 0), 0))
        for number, count in shares:
            if number:
                open_rows[space - count * size].append(Kind(number, lengths + (size,) * count))
        left -= filled * together + last
    return left
