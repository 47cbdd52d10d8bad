"""Several documents or sentence pairs in one row, by best fit on the histogram of lengths (Krell et al. 2021).

The longest segment first, each into the fullest row that still has room (arXiv 2107.02027, longest-pack-first). Which
segment takes which slot of its length is shuffled in every epoch. Memory: 6 bytes per segment and 8 per row.

Shapes: B rows, L positions, S segments of a row, N segments.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pretrain.batching.masking import IGNORED
from pretrain.batching.sources import Numbers, Rows, RowSource, runs
from pretrain.rng import permute, random_bits

# A row is closed at 4 times the mean number of segments, but not below 8: every row of a batch has the cost of the row
# with most segments, and without a limit the shortest documents would all end up in the last rows. At 4, geometric and
# log-normal lengths still fill 98 to 99 %.
_MEANS, _SMALLEST_LIMIT = 4, 8
_AT_ONCE = 1 << 20  # segments: bounds the memory of laying out an epoch


class Segments(RowSource, Protocol):
    """Rows of one segment with lengths that are known before reading: ``Documents``, ``Pairs``."""

    def lengths(self, epoch: int) -> NDArray[np.integer]:
        """Tokens of every row of an epoch, special pieces counted."""


class RowLayout(NamedTuple):
    """Rows with the same segment lengths: their number, and the lengths, longest first."""

    rows: int
    lengths: tuple[int, ...]


class Packed:
    """Several segments of a source in each row, padded to ``length``; every segment is in one row of an epoch.

    ``key`` seeds the shuffles; they repeat after ``repeat`` epochs, for static masks (None: never). ``begins``: where
    parts of the segments begin, which share no row. The rows of a part follow those of the one before; with several
    parts, all epochs must have segments of the same lengths.
    """

    def __init__(
        self, source: Segments, length: int, key: np.uint64, repeat: int | None = None, begins: Iterable[int] = (0,)
    ) -> None:
        self._source, self._length, self._key, self._repeat = source, length, key, repeat or sys.maxsize
        self._parts = [slice(*ends) for ends in pairwise([*begins, None])]
        self._layouts = lru_cache(maxsize=64 * len(self._parts))(self._fill)
        self._rows = lru_cache(maxsize=2 * len(self._parts))(self._deal)
        self._first_rows = np.cumsum([0, *self.sizes(0)[:-1]])

    def sizes(self, epoch: int) -> list[int]:
        """Rows of each part."""
        numbers = range(len(self._parts))
        return [sum(layout.rows for layout in self._layouts(epoch % self._repeat, part)) for part in numbers]

    def count(self, epoch: int) -> int:
        return sum(self.sizes(epoch))

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

        pad_id = segments.ids_BL[lengths_N.argmin(), -1]  # if the shortest has no padding, no row has any
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
        return self._source.sources(epoch, self._segments(np.full_like(rows_B, epoch), rows_B)[0][:, 0])

    def _segments(self, epochs_B: Numbers, rows_B: Numbers) -> tuple[Numbers, Numbers]:
        """Numbers and lengths of the segments of rows, in order, then zeros; both B x S."""
        passes_B = epochs_B % self._repeat
        parts_B = np.searchsorted(self._first_rows, rows_B, side="right") - 1
        both = sorted(set(zip(passes_B.tolist(), parts_B.tolist(), strict=True)))
        layouts = (layout for number, part in both for layout in self._layouts(number, part))
        width = max((len(layout.lengths) for layout in layouts), default=1)
        segments_BS, lengths_BS = np.zeros((2, len(rows_B), width), np.int64)
        for number, part in both:
            begins, segments, lengths = self._rows(number, part)
            here = np.flatnonzero((passes_B == number) & (parts_B == part))
            numbers_B = rows_B[here] - self._first_rows[part]
            first_B = begins[numbers_B]
            counts_B = begins[numbers_B + 1] - first_B
            at = np.repeat(here, counts_B), runs(np.zeros_like(counts_B), counts_B)
            places_N = runs(first_B, counts_B)
            segments_BS[at], lengths_BS[at] = segments[places_N], lengths[places_N]
        return segments_BS, lengths_BS

    def _fill(self, number: int, part: int) -> list[RowLayout]:
        histogram = np.bincount(self._source.lengths(number)[self._parts[part]], minlength=self._length + 1)
        tokens = int(histogram @ np.arange(len(histogram)))
        mean = -(-int(histogram.sum()) * self._length // max(1, tokens))
        return pack_histogram(histogram.tolist(), self._length, max(_SMALLEST_LIMIT, _MEANS * mean))

    def _deal(self, number: int, part: int) -> tuple[Numbers, NDArray[np.unsignedinteger], NDArray[np.uint16]]:
        """Where the segments of each row begin (and the total number), and all segments and their lengths, row after
        row.

        Rows of 3 + 2 + 2 tokens take the next segment of 3 tokens and the next two of 2, out of a shuffled list.
        """
        layouts, own = self._layouts(number, part), self._parts[part]
        all_N = self._source.lengths(number)
        lengths_N = all_N[own].astype(np.uint16)
        key = random_bits(self._key, np.array([number]))[0]
        segments_N = np.empty(len(lengths_N), np.min_scalar_type(len(all_N)))
        for begin in range(0, len(lengths_N), _AT_ONCE):
            end = min(begin + _AT_ONCE, len(lengths_N))
            segments_N[begin:end] = permute(np.arange(begin, end), len(lengths_N), key)
        # 16-bit integers are sorted in linear time
        segments_N = segments_N[np.argsort(lengths_N[segments_N], kind="stable")] + segments_N.dtype.type(own.start)
        histogram = np.bincount(lengths_N, minlength=self._length + 1)
        place = (np.cumsum(histogram) - histogram).tolist()  # of the next segment of each length
        parts = []
        for rows, lengths in layouts:
            columns = []
            for size, count in Counter(lengths).items():
                columns.append(segments_N[place[size] : place[size] + rows * count].reshape(rows, count))
                place[size] += rows * count
            parts.append(np.hstack(columns).reshape(-1))
        counts = np.repeat([len(layout.lengths) for layout in layouts], [layout.rows for layout in layouts])
        row_lengths = np.concatenate([np.tile(np.array(layout.lengths, np.uint16), layout.rows) for layout in layouts])
        return np.append(0, np.cumsum(counts)), np.concatenate(parts), row_lengths


def pack_histogram(histogram: list[int], length: int, max_segments: int) -> list[RowLayout]:
    """Fill rows of ``length`` tokens with ``histogram[n]`` segments of n tokens; a row of ``max_segments`` is closed.

    Segments A to F, the longest first, each into the fullest row of 8 tokens that still holds it:

        A A A A A A D D    A starts a row, B another; C fills the row of B, D the row of A
        B B B B B C C C
        E E F . . . . .    both are full, so E starts a third row, which has room for F

    >>> lengths = [6, 5, 3, 2, 2, 1]
    >>> [layout.lengths for layout in pack_histogram(np.bincount(lengths, minlength=9).tolist(), 8, 4)]
    [(5, 3), (6, 2), (2, 1)]
    """
    open_rows: list[list[RowLayout]] = [[] for _ in range(length + 1)]  # by free space
    for size in range(length, 0, -1):
        left = histogram[size]
        for space in range(size, length):  # the fullest first
            if left and open_rows[space]:
                left = _place(open_rows, space, size, left, max_segments)
        if left:
            together = min(length // size, max_segments)
            open_rows[length].append(RowLayout(-(-left // together), ()))
            _place(open_rows, length, size, left, max_segments)
    return [layout for layouts in open_rows for layout in layouts]


def _place(open_rows: list[list[RowLayout]], space: int, size: int, left: int, max_segments: int) -> int:
    """Put up to ``left`` segments into the rows with ``space``; returns how many did not fit."""
    layouts, open_rows[space] = open_rows[space], []
    for rows, lengths in layouts:
        together = min(space // size, max_segments - len(lengths))
        filled = min(rows, left // together) if together else 0
        last = min(together, left - filled * together) if filled < rows else 0  # of one row that is not full
        shares = ((filled, together), (int(last > 0), last), (rows - filled - (last > 0), 0))
        for number, count in shares:
            if number:
                open_rows[space - count * size].append(RowLayout(number, lengths + (size,) * count))
        left -= filled * together + last
    return left
