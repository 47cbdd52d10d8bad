"""Whole-word masking with an exact budget, as a pure function of (seed, epoch, row, position).

A word is a piece and the pieces that continue it (KLUE paper 4.1). Words are taken in random order while they fit,
until round(share x tokens) pieces are chosen; a longer word is skipped, as in google-research/bert. Of the chosen
pieces, 80 % become [MASK] and 10 % a random piece (``pretrain.config.MaskingConfig``); the rest stays.

Shapes: B rows, L positions, M most predictions in a row, N words (of all rows, in one flat list), K candidates, W most
candidates in a row, V vocabulary. A place is a position counted over all rows: row x L + column.
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
DUPLICATES = 10  # epochs after which pairs and static masks repeat (dupe_factor of BERT's code)
CONTINUATION_SIGN = "##"  # WordPiece: in front of pieces that continue a word
BLANK_SIGNS = ("Ġ", "▁")  # byte-level BPE, SentencePiece: in front of pieces that begin one
UNUSED_SIGNS = ("[unused", "<unused")

_LAST = np.uint64(2**64 - 1)  # after every draw
_RANK_BITS = np.uint64(16)  # low bits of a draw that hold a word's rank in its row, so a row has at most 65,536 words
_RANKS = (np.uint64(1) << _RANK_BITS) - np.uint64(1)
_KIND_KEY, _REPLACEMENT_KEY = (derive_key(0, name) for name in ("kind", "replacement"))


@dataclass(frozen=True, slots=True)
class Pieces:
    continues_V: NDArray[np.bool_]  # True where the piece continues a word ("##는")
    special_V: NDArray[np.bool_]  # [CLS], [SEP], [PAD], [UNK], [MASK]; never chosen
    ordinary_ids: Numbers  # those that may replace a piece: neither special nor "[unused…]"
    mask_id: int


class Masked(NamedTuple):
    """Masked rows and their targets."""

    ids_BL: Numbers
    positions_BM: Numbers  # of the predictions in their row, ascending; 0 where there are fewer than M
    targets_BM: Numbers  # the original pieces; ``IGNORED`` where there are fewer than M


def describe_pieces(vocabulary: list[str], special_ids: dict[str, int]) -> Pieces:
    """Classify the pieces of a vocabulary; ``special_ids`` names at least "mask".

    The most frequent sign identifies the family of tokenizers: "##" continues a word, "Ġ" and "▁" are the space before
    a word. If no piece has a sign, every piece is a word.
    """

    def begin_with(sign: str | tuple[str, ...]) -> NDArray[np.bool_]:
        return np.array([piece.startswith(sign) for piece in vocabulary], bool)

    special_V = np.zeros(len(vocabulary), bool)
    special_V[list(special_ids.values())] = True
    signs = {sign: begin_with(sign) for sign in (CONTINUATION_SIGN, *BLANK_SIGNS)}
    sign = max(signs, key=lambda sign: np.count_nonzero(signs[sign]))  # the first if none occurs
    continues_V = signs[sign] if sign == CONTINUATION_SIGN else ~signs[sign] & ~special_V
    ordinary_ids = np.flatnonzero(~special_V & ~begin_with(UNUSED_SIGNS))
    return Pieces(continues_V, special_V, ordinary_ids, special_ids["mask"])


def max_predictions(length: int, share: float) -> int:
    """The budget of a full row; at least one."""
    return max(1, round(length * share))


def row_keys(seed: int, config: MaskingConfig, epochs_B: Numbers, rows_B: Numbers) -> Bits:
    """Keys of rows: static masks repeat after ``DUPLICATES`` epochs, dynamic ones never (Table 31)."""
    passes_B = epochs_B % DUPLICATES if config.mode == "static" else epochs_B
    return random_bits(random_bits(derive_key(seed, "masks"), passes_B), rows_B)


def mask_rows(rows: Rows, row_keys_B: Bits, pieces: Pieces, config: MaskingConfig) -> Masked:
    """Mask rows; the result for a row depends only on the row and its key (``row_keys``).

    The budget counts [CLS] and [SEP]. Words are those of the vocabulary unless the rows say where units begin.
    """
    ids_BL = rows.ids_BL
    count, length = ids_BL.shape
    budget_B = np.maximum(1, np.rint(rows.tokens_B * config.share)).astype(np.int64)
    starts_N, sizes_N = _words_of(rows, pieces)
    rows_N, columns_N = np.divmod(starts_N, length)
    draws_N = random_bits(row_keys_B[rows_N], columns_N)
    draws_N <<= _RANK_BITS
    taken = _choose_words(sizes_N, rows_N, draws_N, budget_B, config.share)
    places = runs(starts_N[taken], sizes_N[taken])
    numbers, columns = np.divmod(places, length)
    targets = ids_BL.reshape(-1)[places]
    masked_BL = ids_BL.copy()
    masked_BL.reshape(-1)[places] = _replace(targets, row_keys_B[numbers], columns, pieces, config)
    counts_B = np.bincount(numbers, minlength=count)
    slots = np.arange(len(places)) - np.repeat(np.cumsum(counts_B) - counts_B, counts_B)
    positions_BM = np.zeros((count, max_predictions(length, config.share)), np.int64)
    targets_BM = np.full_like(positions_BM, IGNORED)
    positions_BM[numbers, slots] = columns
    targets_BM[numbers, slots] = targets
    return Masked(masked_BL, positions_BM, targets_BM)


def _words_of(rows: Rows, pieces: Pieces) -> tuple[Numbers, Numbers]:
    """The words of all rows, in order: the place of the first piece, and the number of pieces.

    Words end at the next word, special piece or row; at the start of a row, the rest of a word counts as a word.
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


def _choose_words(sizes_N: Numbers, rows_N: Numbers, draws_N: Bits, budget_B: Numbers, share: float) -> Numbers:
    """Numbers of the words chosen, ascending.

    Only words with a draw in the lowest 2 x ``share`` of its range are sorted, twice as many as needed on average. A
    row with budget left is repeated with all its words.
    """
    likely_share = min(2 * share, 0.5)
    likely_K = np.flatnonzero(draws_N <= np.uint64(2**64 * likely_share))  # a draw is anything below 2**64
    taken, left_B = _take_words(sizes_N, rows_N, draws_N, likely_K, budget_B)
    again_B = left_B > 0
    if again_B.any():
        again_K = np.flatnonzero(again_B[rows_N])
        numbers_N = (np.cumsum(again_B) - 1)[rows_N]  # counting only the repeated rows
        again, _ = _take_words(sizes_N, numbers_N, draws_N, again_K, budget_B[again_B])
        taken = np.concatenate([taken[~again_B[rows_N[taken]]], again])
    return np.sort(taken)


def _take_words(
    sizes_N: Numbers, rows_N: Numbers, draws_N: Bits, candidates_K: Numbers, budget_B: Numbers
) -> tuple[Numbers, Numbers]:
    """Take candidates in the order of their draws while they fit; the numbers of those taken, and the budgets left."""
    rows_K = rows_N[candidates_K]
    counts_B = np.bincount(rows_K, minlength=len(budget_B))
    first_B = np.cumsum(counts_B) - counts_B
    ranks_K = np.arange(len(candidates_K)) - np.repeat(first_B, counts_B)
    draws_BW = np.full((len(budget_B), counts_B.max(initial=0)), _LAST)
    # the low bits of a draw hold the rank in the row, so sorting draws sorts words, and equal draws by place
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
        left   4 2  .  1  .  0    B and D do not fit and are skipped

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


def _replace(targets: Numbers, keys: Bits, columns: Numbers, pieces: Pieces, config: MaskingConfig) -> Numbers:
    """What is shown for each chosen piece: [MASK], a random ordinary piece, or the piece itself."""
    kind = as_uniform(random_bits(keys ^ _KIND_KEY, columns))
    shown = np.where(kind < config.mask_share, pieces.mask_id, targets)
    replaced = np.flatnonzero((kind >= config.mask_share) & (kind < config.mask_share + config.random_share))
    draws = random_bits(keys[replaced] ^ _REPLACEMENT_KEY, columns[replaced])
    shown[replaced] = pieces.ordinary_ids[draws % np.uint64(len(pieces.ordinary_ids))]
    return shown
