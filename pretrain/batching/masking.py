"""Whole-word masking with an exact budget, as a pure function of (seed, epoch, row, position).

A word is a piece and the pieces after it that continue it (KLUE paper 4.1). Words are taken in random order while they
fit, until round(share x tokens) pieces are chosen: 77 in every full block of 512. A word longer than what is left is
passed over, as in google-research/bert. Vectorised over rows; equal to the plain loop.

Shapes: B rows, L positions, M most predictions in a row, N words (of all rows, in one flat list), K candidates, W most
candidates in a row, V vocabulary. A place is a position counted through all rows: row x L + column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pretrain.batching.sources import Numbers, Rows, runs
from pretrain.config import MaskingConfig
from pretrain.rng import Bits, as_uniform, derive_key, random_bits

IGNORED = -100  # a target that does not count
CONTINUATION_SIGN = "##"  # WordPiece: in front of pieces that continue a word
BLANK_SIGNS = ("Ġ", "▁")  # byte-level BPE, SentencePiece: in front of pieces that begin one
UNUSED_SIGNS = ("[unused", "<unused")

_LAST = np.uint64(2**64 - 1)  # after every draw
_RANK_BITS = np.uint64(16)  # low bits of a draw that hold a word's rank in its row, so a row has at most 65,536 words
_RANKS = (np.uint64(1) << _RANK_BITS) - np.uint64(1)
_DRAW_BITS = np.uint64(36)  # of a draw that order the words of one length; 28 are left for row and length
_KIND_KEY, _REPLACEMENT_KEY, _SINGLE_KEY, _ROUNDING_KEY = (
    derive_key(0, name) for name in ("kind", "replacement", "single", "rounding")
)


@dataclass(frozen=True, slots=True)
class Pieces:
    continues_V: NDArray[np.bool_]  # True where the piece continues a word ("##는")
    special_V: NDArray[np.bool_]  # [CLS], [SEP], [PAD], [UNK], [MASK]; never chosen
    ordinary_ids: Numbers  # those that may replace a piece: neither special nor "[unused…]"
    mask_id: int
    counts_V: Numbers | None = None  # how often each comes in the text, for ``MaskingConfig.rare_power``


class Masked(NamedTuple):
    """Rows to show and what to predict."""

    ids_BL: Numbers
    positions_BM: Numbers  # of the predictions in their row, ascending; 0 where there are fewer than M
    targets_BM: Numbers  # the pieces that stood there; ``IGNORED`` where there are fewer than M


def describe_pieces(vocabulary: list[str], special_ids: dict[str, int], counts_V: Numbers | None = None) -> Pieces:
    """Look the vocabulary over once; ``special_ids`` names at least "mask".

    Which family of tokenizers it comes from is told by the sign that most pieces carry: "##" continues a word, "Ġ" and
    "▁" stand for the blank in front of one. Where no piece has a sign, every piece is a word.
    """

    def begin_with(sign: str | tuple[str, ...]) -> NDArray[np.bool_]:
        return np.array([piece.startswith(sign) for piece in vocabulary], bool)

    special_V = np.zeros(len(vocabulary), bool)
    special_V[list(special_ids.values())] = True
    signs = {sign: begin_with(sign) for sign in (CONTINUATION_SIGN, *BLANK_SIGNS)}
    sign = max(signs, key=lambda sign: np.count_nonzero(signs[sign]))  # the first of them where none occurs
    continues_V = signs[sign] if sign == CONTINUATION_SIGN else ~signs[sign] & ~special_V
    ordinary_ids = np.flatnonzero(~special_V & ~begin_with(UNUSED_SIGNS))
    return Pieces(continues_V, special_V, ordinary_ids, special_ids["mask"], counts_V)


def most_predictions(length: int, share: float) -> int:
    """The budget of a full row; at least one."""
    return max(1, round(length * share))


def row_keys(seed: int, config: MaskingConfig, epochs_B: Numbers, rows_B: Numbers) -> Bits:
    """Keys of rows: static masks repeat after ``duplicates`` epochs, dynamic ones never (Table 31)."""
    passes_B = epochs_B % config.duplicates if config.mode == "static" else epochs_B
    return random_bits(random_bits(derive_key(seed, "masks"), passes_B), rows_B)


def mask_rows(rows: Rows, row_keys_B: Bits, pieces: Pieces, config: MaskingConfig) -> Masked:
    """Mask rows; the outcome for a row depends on nothing but the row and its key (``row_keys``).

    The budget counts [CLS] and [SEP]. Words are those of the vocabulary unless the rows say where units begin.
    """
    ids_BL = rows.ids_BL
    count, length = ids_BL.shape
    budget_B = np.maximum(1, np.rint(rows.tokens_B * config.share)).astype(np.int64)
    starts_N, sizes_N = _words_of(rows, pieces)
    rows_N, columns_N = np.divmod(starts_N, length)
    draws_N = random_bits(row_keys_B[rows_N], columns_N)
    if config.rare_power and pieces.counts_V is not None:
        draws_N = _earlier(draws_N, _weights(ids_BL.reshape(-1), starts_N, sizes_N, pieces.counts_V, config.rare_power))
    draws_N <<= _RANK_BITS
    if config.length_bias == "none":
        taken = _choose_evenly(sizes_N, rows_N, draws_N, row_keys_B, budget_B)
    else:
        taken = _choose_words(sizes_N, rows_N, draws_N, budget_B, config.share)
    places = runs(starts_N[taken], sizes_N[taken])
    numbers, columns = np.divmod(places, length)
    targets = ids_BL.reshape(-1)[places]
    masked_BL = ids_BL.copy()
    masked_BL.reshape(-1)[places] = _shown(targets, row_keys_B[numbers], columns, pieces, config)
    found_B = np.bincount(numbers, minlength=count)
    slots = np.arange(len(places)) - np.repeat(np.cumsum(found_B) - found_B, found_B)
    positions_BM = np.zeros((count, most_predictions(length, config.share)), np.int64)
    targets_BM = np.full_like(positions_BM, IGNORED)
    positions_BM[numbers, slots] = columns
    targets_BM[numbers, slots] = targets
    return Masked(masked_BL, positions_BM, targets_BM)


def mask_single(rows: Rows, row_keys_B: Bits, pieces: Pieces) -> Masked:
    """Show one piece of each row as [MASK], any of its ordinary pieces alike (for the pseudo-perplexity); M is 1.

    The target of a row that holds nothing but special pieces is ``IGNORED``.
    """
    ids_BL = rows.ids_BL
    draws_BL = random_bits((row_keys_B ^ _SINGLE_KEY)[:, None], np.arange(ids_BL.shape[1])[None])
    special_BL = pieces.special_V[ids_BL]
    draws_BL[special_BL] = _LAST
    columns_B1 = draws_BL.argmin(axis=1)[:, None]
    has_none_B1 = special_BL.all(axis=1, keepdims=True)
    targets_B1 = np.take_along_axis(ids_BL, columns_B1, 1)
    masked_BL = ids_BL.copy()
    np.put_along_axis(masked_BL, columns_B1, np.where(has_none_B1, targets_B1, pieces.mask_id), 1)
    return Masked(masked_BL, np.where(has_none_B1, 0, columns_B1), np.where(has_none_B1, IGNORED, targets_B1))


def _words_of(rows: Rows, pieces: Pieces) -> tuple[Numbers, Numbers]:
    """The words of all rows, in order: the place of the first piece, and the number of pieces.

    Words end at the next word, special piece or row; a row may open in the middle of one, whose rest is a word.
    """
    special_BL = pieces.special_V[rows.ids_BL]
    border_BL = ~pieces.continues_V[rows.ids_BL] if rows.units_BL is None else rows.units_BL.copy()
    border_BL |= special_BL
    border_BL[:, 1:] |= special_BL[:, :-1]
    border_BL[:, 0] = True
    borders = np.flatnonzero(border_BL)
    is_word = ~special_BL.reshape(-1)[borders]
    sizes = np.diff(borders, append=border_BL.size)
    return borders[is_word], sizes[is_word]


def _weights(ids: Numbers, starts_N: Numbers, sizes_N: Numbers, counts_V: Numbers, power: float) -> NDArray[np.float64]:
    """How much more often a word is chosen than most: that of its rarest piece; 1 on average over the text."""
    weights_V = 1.0 / np.maximum(counts_V, 1) ** power
    weights_V /= (counts_V * weights_V).sum() / max(counts_V.sum(), 1)
    places = runs(starts_N, sizes_N)
    return np.maximum.reduceat(weights_V[ids[places]], np.cumsum(sizes_N) - sizes_N) if len(places) else np.ones(0)


def _earlier(draws_N: Bits, weights_N: NDArray[np.float64]) -> Bits:
    """Draws in the order of a choice by weights without replacement (Efraimidis and Spirakis 2006).

    A draw is when an exponential clock rings, and the clock of a word runs as fast as its weight says.
    """
    rings_N = -np.log1p(-as_uniform(draws_N)) / weights_N
    return (rings_N / (1.0 + rings_N) * 2.0**48).astype(np.uint64)  # below 2**48 however late a clock rings


def _choose_words(sizes_N: Numbers, rows_N: Numbers, draws_N: Bits, budget_B: Numbers, share: float) -> Numbers:
    """Numbers of the words chosen, ascending.

    Draws order the words, and only the first few are needed: those that fill ``share`` of the row. So only the words
    whose draw lies in the lowest 2 x share of its range are sorted, twice as many as are needed on average; a row that
    has budget left after them is done once more, with all its words.
    """
    likely_share = min(2 * share, 0.5)
    likely_K = np.flatnonzero(draws_N <= np.uint64(2**64 * likely_share))  # a draw is anything below 2**64
    taken, left_B = _take_words(sizes_N, rows_N, draws_N, likely_K, budget_B)
    again_B = left_B > 0
    if again_B.any():
        again_K = np.flatnonzero(again_B[rows_N])
        numbers_N = (np.cumsum(again_B) - 1)[rows_N]  # counting only the rows done once more
        again, _ = _take_words(sizes_N, numbers_N, draws_N, again_K, budget_B[again_B])
        taken = np.concatenate([taken[~again_B[rows_N[taken]]], again])
    return np.sort(taken)


def _choose_evenly(sizes_N: Numbers, rows_N: Numbers, draws_N: Bits, row_keys_B: Bits, budget_B: Numbers) -> Numbers:
    """Numbers of the words chosen, ascending: every word of a row has the same chance, whatever its length.

    The lengths have their turns, the longest first. In each, the chance is what is left of the budget by the pieces of
    the words that are left; so many of the words of this length are taken, rounded at random up or down, those with the
    lowest draws. The chance is a martingale: as a word takes on average its share of both, the next chance is on
    average the one before. Words of one piece come last and take the rest exactly:

        pieces         4          3          2          1
        words          1          2          6          12       31 pieces, budget 5
        taken       5/31 → 0  10/31 → 1  12/24 → 0   2 of 12     each word with 5/31 on average

    Only where words do not fit at all (seven pieces into a budget of six, two into a last one) others take their place.
    """
    count, longest = len(budget_B), int(sizes_N.max(initial=1))
    kinds_N = rows_N * (longest + 1) + sizes_N  # words of one row and one length
    counts_BS = np.bincount(kinds_N, minlength=count * (longest + 1)).reshape(count, -1)
    taken_BS = np.zeros_like(counts_BS)
    left_B, pieces_B = budget_B.copy(), counts_BS @ np.arange(longest + 1)
    for size in np.flatnonzero(counts_BS.any(axis=0))[::-1].tolist():
        words_B = counts_BS[:, size]
        expected_B = words_B * left_B / np.maximum(pieces_B, 1)
        pieces_B = pieces_B - words_B * size
        rounded_B = np.floor(expected_B + as_uniform(random_bits(row_keys_B ^ _ROUNDING_KEY, np.array([size]))))
        least_B = -(-(left_B - pieces_B) // size)  # what is left must not exceed the pieces of the shorter words
        most_B = np.minimum(left_B // size, words_B)
        taken_BS[:, size] = np.minimum(np.maximum(rounded_B.astype(np.int64), least_B), most_B)
        left_B = left_B - taken_BS[:, size] * size
    # the draw rides in the low bits of the kind: one sort instead of two
    order_N = np.argsort(
        kinds_N.astype(np.uint64) << _DRAW_BITS | draws_N >> (np.uint64(64) - _DRAW_BITS), kind="stable"
    )
    ends_K = np.cumsum(counts_BS.reshape(-1))
    ranks_N = np.arange(len(order_N)) - (ends_K - counts_BS.reshape(-1))[kinds_N[order_N]]
    return np.sort(order_N[ranks_N < taken_BS.reshape(-1)[kinds_N[order_N]]])


def _take_words(
    sizes_N: Numbers, rows_N: Numbers, draws_N: Bits, candidates_K: Numbers, budget_B: Numbers
) -> tuple[Numbers, Numbers]:
    """Take candidates in the order of their draws while they fit; the numbers of those taken, and the budgets left."""
    rows_K = rows_N[candidates_K]
    counts_B = np.bincount(rows_K, minlength=len(budget_B))
    first_B = np.cumsum(counts_B) - counts_B
    ranks_K = np.arange(len(candidates_K)) - np.repeat(first_B, counts_B)
    draws_BW = np.full((len(budget_B), counts_B.max(initial=0)), _LAST)
    # the rank in its row rides in the low bits of a draw, so sorting draws sorts words, equal ones by their places
    draws_BW[rows_K, ranks_K] = draws_N[candidates_K] | ranks_K.astype(np.uint64)
    draws_BW.sort(axis=1)
    is_word_BW = np.arange(draws_BW.shape[1]) < counts_B[:, None]
    words_BW = np.zeros(draws_BW.shape, np.int64)
    words_BW[is_word_BW] = candidates_K[(draws_BW[is_word_BW] & _RANKS).astype(np.int64) + np.repeat(first_B, counts_B)]
    sizes_BW = np.zeros(draws_BW.shape, np.int32)
    sizes_BW[is_word_BW] = sizes_N[words_BW[is_word_BW]]
    taken_BW, left_B = _take_while_they_fit(sizes_BW, budget_B)
    return words_BW[taken_BW], left_B


def _take_while_they_fit(sizes_BW: NDArray[np.int32], budget_B: Numbers) -> tuple[NDArray[np.bool_], Numbers]:
    """Go through each row from left to right and take what fits into what is left; a size of 0 is no word.

    Words A B C D E in the order of their draws, and a budget of 4 pieces:

        pieces   2  3  1  2  1
        left   4 2  .  1  .  0    B and D do not fit and are passed over

    >>> taken_BW, left_B = _take_while_they_fit(np.array([[2, 3, 1, 2, 1]], np.int32), np.array([4]))
    >>> taken_BW.tolist(), left_B.tolist()
    ([[True, False, True, False, True]], [0])
    """
    taken_BW = np.zeros(sizes_BW.shape, bool)
    alive_BW = sizes_BW > 0
    left_B = budget_B.copy()
    while alive_BW.any():
        # all before the first word that does not fit; from there on the sums are too large
        fits_BW = alive_BW & (np.cumsum(sizes_BW * alive_BW, axis=1) <= left_B[:, None])
        taken_BW |= fits_BW
        left_B -= (sizes_BW * fits_BW).sum(axis=1)
        alive_BW &= ~fits_BW & (sizes_BW <= left_B[:, None])
    return taken_BW, left_B


def _shown(targets: Numbers, keys: Bits, columns: Numbers, pieces: Pieces, config: MaskingConfig) -> Numbers:
    """What stands in the place of each chosen piece: [MASK], another ordinary piece, or the piece itself."""
    kind = as_uniform(random_bits(keys ^ _KIND_KEY, columns))
    shown = np.where(kind < config.mask_share, pieces.mask_id, targets)
    replaced = np.flatnonzero((kind >= config.mask_share) & (kind < config.mask_share + config.random_share))
    draws = random_bits(keys[replaced] ^ _REPLACEMENT_KEY, columns[replaced])
    shown[replaced] = pieces.ordinary_ids[draws % np.uint64(len(pieces.ordinary_ids))]
    return shown
