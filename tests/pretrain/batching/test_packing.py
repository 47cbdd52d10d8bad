"""Documents as rows and packed rows, against slow references that handle one segment at a time."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pretrain.batching.masking import IGNORED, describe_pieces, mask_rows, row_keys
from pretrain.batching.packing import Packed, pack_histogram
from pretrain.batching.pairs import Pairs
from pretrain.batching.sources import Documents, Rows
from pretrain.config import MaskingConfig
from pretrain.pack.store import TokenStore, open_store, piece_ids, read_pieces
from pretrain.rng import derive_key

KEY = derive_key(1, "packing")
SPECIAL_IDS = {"cls": 0, "pad": 1, "sep": 2, "unk": 3, "mask": 4}


def store_of(sizes: list[int]) -> TokenStore:
    """Documents of the given numbers of pieces; piece n of the corpus is n + 5, an eojeol begins at every third."""
    begins = np.concatenate([[0], np.cumsum(np.array(sizes) + 1)])
    tokens = np.arange(5, 5 + begins[-1]).astype(np.uint16)
    tokens[::3] |= 1 << 15
    tokens[begins[1:] - 1] = SPECIAL_IDS["sep"]
    sources = (np.arange(len(sizes)) % 2).astype(np.uint16)
    meta = {"special_ids": SPECIAL_IDS, "sources": {"수필": 0, "일기": 0}, "vocab_size": 1 << 15}
    return TokenStore(tokens, begins, begins, sources, meta)


class Invented:
    """Segments of given lengths in three kinds of epochs; everything about a segment follows from its number."""

    def __init__(self, lengths: list[int], length: int) -> None:
        self._lengths, self._length = np.array(lengths), length

    def lengths(self, epoch: int) -> NDArray[np.int64]:
        return np.roll(self._lengths, epoch)

    def count(self, epoch: int) -> int:
        return len(self._lengths)

    def gather(self, epochs_B: NDArray[np.int64], rows_B: NDArray[np.int64]) -> Rows:
        columns_L = np.arange(self._length)
        sizes_B = np.array([self.lengths(epoch)[row] for epoch, row in zip(epochs_B, rows_B, strict=True)])
        inside_BL = columns_L < sizes_B[:, None]
        ids_BL = np.where(inside_BL, 10 + rows_B[:, None] * 100 + columns_L, 1)
        types_BL, units_BL = np.where(inside_BL, columns_L % 2, 0), inside_BL & (columns_L % 3 == 0)
        return Rows(ids_BL, rows_B + 7, sizes_B[:, None], types_BL, rows_B[:, None] % 2, units_BL)

    def sources(self, epoch: int, rows_B: NDArray[np.int64]) -> NDArray[np.int64]:
        return rows_B % 5


def rows_of(source: Any, epoch: int = 0) -> tuple[Rows, NDArray[np.int64]]:
    rows_B = np.arange(source.count(epoch))
    return source.gather(np.full(len(rows_B), epoch), rows_B), rows_B


def segments_of(rows: Rows) -> list[tuple[int, int, int]]:
    """Row, begin and length of every segment."""
    assert rows.lengths_BS is not None
    found = []
    for row, lengths in enumerate(rows.lengths_BS.tolist()):
        begin = 0
        for length in filter(None, lengths):
            found.append((row, begin, length))
            begin += length
    return found


@given(st.lists(st.integers(0, 70), min_size=1, max_size=12), st.integers(8, 32))
@settings(max_examples=60, deadline=None)
def test_rows_of_documents_hold_every_piece_once_and_no_tiny_rest(sizes: list[int], length: int) -> None:
    store = store_of(sizes)
    chosen = np.arange(len(sizes))[::2]
    source = Documents(store, chosen, length, "eojeol")
    rows, rows_B = rows_of(source)
    expected: list[list[int]] = []
    for document in chosen:
        begin, end = int(store.documents[document]), int(store.documents[document + 1]) - 1
        while begin < end:
            rest = end - begin
            size = length - 2 if rest >= 2 * (length - 2) else min(length - 2, max(rest - length // 8, 0))
            size = rest if rest <= length - 2 else size
            expected.append([begin, begin + size, int(document)])
            begin += size
    assert len(rows_B) == len(expected)
    for row, (begin, end, document) in enumerate(expected):
        pieces = piece_ids(store.tokens[begin:end]).tolist()
        padding = length - 2 - len(pieces)
        assert rows.ids_BL[row].tolist() == [0, *pieces, 2, *[1] * padding]
        assert rows.units_BL is not None
        marks = (store.tokens[begin:end] >> 15).astype(bool).tolist()
        assert rows.units_BL[row].tolist() == [False, *marks, *[False] * (padding + 1)]
        assert source.sources(0, rows_B)[row] == document % 2
        assert len(pieces) >= min(length // 8, sizes[document])
    assert rows.lengths_BS is not None
    assert (
        rows.lengths_BS[:, 0].tolist() == source.lengths(0).tolist() == [end - begin + 2 for begin, end, _ in expected]
    )
    assert len(set(rows.names_B.tolist())) == len(expected)


def spaces_of_best_fit(lengths: list[int], length: int) -> list[int]:
    """Space left in each row when segments go one by one, the longest first, into the fullest row that holds them."""
    spaces: list[int] = []
    for size in sorted(lengths, reverse=True):
        fitting = [space for space in spaces if space >= size]
        if fitting:
            spaces.remove(min(fitting))
        spaces.append(min(fitting, default=length) - size)
    return sorted(spaces)


@given(st.lists(st.integers(1, 24), max_size=80))
@settings(max_examples=100, deadline=None)
def test_packing_by_histogram_equals_best_fit_one_by_one(lengths: list[int]) -> None:
    kinds = pack_histogram(np.bincount(lengths, minlength=25).tolist() if lengths else [0] * 25, 24, 100)
    assert sorted(24 - sum(kind.lengths) for kind in kinds for _ in range(kind.rows)) == spaces_of_best_fit(lengths, 24)
    assert Counter(size for kind in kinds for size in kind.lengths * kind.rows) == Counter(lengths)


@given(st.lists(st.integers(1, 24), max_size=80), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_a_row_is_closed_at_the_most_segments(lengths: list[int], most: int) -> None:
    kinds = pack_histogram(np.bincount(lengths, minlength=25).tolist() if lengths else [0] * 25, 24, most)
    assert all(0 < len(kind.lengths) <= most and sum(kind.lengths) <= 24 for kind in kinds)
    assert len({kind.lengths for kind in kinds}) == len(kinds)  # rows filled alike are one kind
    assert Counter(size for kind in kinds for size in kind.lengths * kind.rows) == Counter(lengths)


@pytest.mark.parametrize(("tiny", "most"), [(40, 8), (90, 12), (400, 16)])
def test_a_row_is_closed_at_four_times_the_mean_number_of_segments(tiny: int, most: int) -> None:
    """40 full segments and N of one token: a filled row of 16 would hold 1.9, 2.8 or 6.8 of both."""
    rows, _ = rows_of(Packed(Invented([16] * 40 + [1] * tiny, 16), 16, KEY))
    assert rows.lengths_BS is not None
    assert (rows.lengths_BS > 0).sum(axis=1).max() == most


def test_the_cost_of_packing_does_not_grow_with_the_corpus() -> None:
    generator = np.random.default_rng(1)
    histogram = np.bincount(generator.integers(3, 129, 3000), minlength=129)
    small, large = (pack_histogram((histogram * factor).tolist(), 128, 8) for factor in (1, 10**6))
    assert len(large) < 1.5 * len(small)
    assert sum(kind.rows for kind in large) * 128 < (histogram @ np.arange(129)) * 10**6 * 1.01


@given(st.lists(st.integers(1, 16), min_size=1, max_size=60), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_every_segment_is_whole_in_one_row_of_an_epoch(lengths: list[int], epoch: int) -> None:
    source = Invented(lengths, 16)
    rows, rows_B = rows_of(Packed(source, 16, KEY), epoch)
    alone, _ = rows_of(source, epoch)
    assert rows.lengths_BS is not None and rows.is_random_BS is not None
    assert rows.types_BL is not None and alone.types_BL is not None
    assert rows.units_BL is not None and alone.units_BL is not None
    seen, first_of_row = [], {}
    covered_BL = np.zeros(rows.ids_BL.shape, bool)
    for row, begin, length in segments_of(rows):
        inside = np.s_[row, begin : begin + length]
        number = int(rows.ids_BL[inside][0] - 10) // 100
        first_of_row.setdefault(row, number)
        seen.append(number)
        covered_BL[inside] = True
        for name in ("ids_BL", "types_BL", "units_BL"):
            assert np.array_equal(getattr(rows, name)[inside], getattr(alone, name)[number, :length])
    assert sorted(seen) == list(range(len(lengths)))
    assert (rows.ids_BL[~covered_BL] == 1).all() and not rows.units_BL[~covered_BL].any()
    assert not rows.types_BL[~covered_BL].any()
    filled_BS = rows.lengths_BS > 0
    assert (np.diff(filled_BS.astype(int), axis=1) <= 0).all() and filled_BS[:, 0].all()
    assert rows.is_random_BS[filled_BS].tolist() == [number % 2 for number in seen]
    assert (rows.is_random_BS[~filled_BS] == IGNORED).all()
    assert rows.names_B.tolist() == [first_of_row[row] + 7 for row in rows_B]
    assert Packed(source, 16, KEY).sources(epoch, rows_B).tolist() == [first_of_row[row] % 5 for row in rows_B]


def test_a_row_is_the_same_in_any_batch_and_process() -> None:
    lengths = np.random.default_rng(2).integers(1, 17, 200).tolist()
    whole, _ = rows_of(Packed(Invented(lengths, 16), 16, KEY), 1)
    packed = Packed(Invented(lengths, 16), 16, KEY)
    rows_B = np.array([9, 0, 41, 9])
    mixed = packed.gather(np.array([1, 1, 0, 1]), rows_B)  # an epoch ends within the batch
    for name in ("ids_BL", "names_B", "types_BL", "is_random_BS", "units_BL", "lengths_BS"):
        for place in (0, 1, 3):
            assert getattr(mixed, name)[place].tolist() == getattr(whole, name)[rows_B[place]].tolist()
    assert mixed.ids_BL[2].tolist() != whole.ids_BL[41].tolist()


def test_epochs_combine_segments_differently_unless_they_repeat() -> None:
    lengths = np.random.default_rng(3).integers(2, 9, 120).tolist() * 3
    source = Invented(lengths, 16)
    source.lengths = lambda epoch: np.array(lengths)  # type: ignore[method-assign]

    def neighbours(packed: Packed, epoch: int) -> list[frozenset[int]]:
        rows, _ = rows_of(packed, epoch)
        return [frozenset((ids[ids > 1] - 10) // 100) for ids in rows.ids_BL]

    free, repeating = Packed(source, 16, KEY), Packed(source, 16, KEY, repeat=2)
    both = set(neighbours(free, 0)) & set(neighbours(free, 2))
    assert len(both) < 0.2 * free.count(0)
    assert neighbours(repeating, 0) == neighbours(repeating, 2) != neighbours(repeating, 1)
    assert neighbours(Packed(source, 16, derive_key(2, "packing")), 0) != neighbours(free, 0)


def test_documents_of_a_corpus_fill_their_rows(made: Path) -> None:
    store = open_store(made / "tokens", made / "tokenizer")
    source = Documents(store, np.arange(120), 64, "word")
    rows, rows_B = rows_of(Packed(source, 64, KEY))
    assert rows.units_BL is rows.types_BL is rows.is_random_BS is None
    assert rows.tokens_B.sum() == source.lengths(0).sum() == len(store.tokens) + source.count(0) * 2 - 120
    assert rows.tokens_B.mean() > 0.96 * 64 > 1.2 * source.lengths(0).mean()
    pieces = describe_pieces(read_pieces(made / "tokenizer"), store.meta["special_ids"])
    masked = mask_rows(rows, row_keys(1, MaskingConfig(), rows_B * 0, rows.names_B), pieces, MaskingConfig())
    assert not pieces.special_V[masked.targets_BM[masked.targets_BM != IGNORED]].any()


def test_pairs_are_packed_with_their_types_and_answers(made: Path, tiny) -> None:
    store = open_store(made / "tokens", made / "tokenizer")
    pairs = Pairs(store, np.arange(120), 96, tiny(architecture="bert", nsp=True))
    rows, _ = rows_of(Packed(pairs, 96, KEY))
    alone, _ = rows_of(pairs)
    assert alone.lengths_BS is not None and alone.types_BL is not None and alone.is_random_BS is not None
    assert rows.types_BL is not None and rows.is_random_BS is not None
    expected = Counter(
        (tuple(alone.ids_BL[n, :size]), tuple(alone.types_BL[n, :size]), int(alone.is_random_BS[n, 0]))
        for n, size in enumerate(alone.lengths_BS[:, 0].tolist())
    )
    answers = rows.is_random_BS[rows.is_random_BS != IGNORED].tolist()
    places = [np.s_[row, begin : begin + length] for row, begin, length in segments_of(rows)]
    got = Counter(
        (tuple(rows.ids_BL[place]), tuple(rows.types_BL[place]), answer)
        for place, answer in zip(places, answers, strict=True)
    )
    assert got == expected
    assert rows.tokens_B.mean() > 1.2 * alone.lengths_BS.mean()


def test_a_source_that_breaks_its_word_on_lengths_is_found_out() -> None:
    source = Invented([4, 5, 6, 16], 16)
    packed = Packed(source, 16, KEY)
    packed.count(0)
    source._lengths = np.array([4, 5, 7, 16])
    with pytest.raises(AssertionError):
        rows_of(packed)
