"""Whole-word masking with an exact budget, as a pure function of (seed, epoch, row, position).

A word is a piece and the "##" pieces after it (BERT's whole-word masking; KLUE paper 4.1). Words are taken in random
order while they fit, until round(share x tokens) pieces are chosen: 77 in every full block of 512. A word longer than
what is left is passed over, as in google-research/bert. Vectorised over rows; equal to the plain loop, word by word.

Shapes: B rows, L positions, M most predictions in a row, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pretrain.config import MaskingConfig
from pretrain.draws import Words, as_share, derive_key, draw_words

IGNORED = -100  # a target that does not count
_POSITION_BITS = np.uint64(16)


@dataclass(frozen=True, slots=True)
class Pieces:
    """What masking must know of a vocabulary.

    Fields:
        continues_V: True where the piece continues a word ("##는").
        special_V: True for [CLS], [SEP], [PAD], [UNK], [MASK]; never chosen.
        ordinary_ids: ids that may replace a piece: neither special nor "[unused…]".
        mask_id: id of [MASK].
    """

    continues_V: NDArray[np.bool_]
    special_V: NDArray[np.bool_]
    ordinary_ids: NDArray[np.int64]
    mask_id: int


class Masked(NamedTuple):
    """Rows to show and what to predict.

    Fields:
        ids_BL: int64, what the model sees.
        positions_BM: int64, places of the predictions in their row, ascending; 0 where there are fewer than M.
        targets_BM: int64, the pieces that stood there; ``IGNORED`` where there are fewer than M.
    """

    ids_BL: NDArray[np.int64]
    positions_BM: NDArray[np.int64]
    targets_BM: NDArray[np.int64]


def describe_pieces(vocabulary: list[str], special_ids: dict[str, int]) -> Pieces:
    """Look the vocabulary over once; ``special_ids`` names at least "mask"."""
    special_V = np.zeros(len(vocabulary), bool)
    special_V[list(special_ids.values())] = True
    unused_V = np.array([piece.startswith("[unused") for piece in vocabulary])
    continues_V = np.array([piece.startswith("##") for piece in vocabulary])
    return Pieces(continues_V, special_V, np.flatnonzero(~special_V & ~unused_V), special_ids["mask"])


def most_predictions(length: int, share: float) -> int:
    """The budget of a full row; at least one."""
    return max(1, round(length * share))


def mask_rows(
    ids_BL: NDArray[np.int64],
    lengths_B: NDArray[np.int64],
    row_keys_B: Words,
    pieces: Pieces,
    config: MaskingConfig,
) -> Masked:
    """Mask rows; the outcome for a row depends on nothing but the row and its key.

    Args:
        ids_BL: token ids, padded behind ``lengths_B``.
        lengths_B: tokens of each row, [CLS] and [SEP] counted, as the budget counts them.
        row_keys_B: ``row_keys`` of the rows.
    """
    special_BL = pieces.special_V[ids_BL]
    starts_BL = _word_starts(ids_BL, special_BL, pieces)
    budget_B = np.maximum(1, np.rint(lengths_B * config.share)).astype(np.int64)
    chosen_BL = _choose_words(starts_BL, special_BL, budget_B, row_keys_B)
    rows, columns = np.nonzero(chosen_BL)
    keys = row_keys_B[rows]
    kind = as_share(draw_words(keys ^ derive_key(0, "kind"), columns))
    other = draw_words(keys ^ derive_key(0, "replacement"), columns) % np.uint64(len(pieces.ordinary_ids))
    targets = ids_BL[rows, columns]
    is_random = kind < config.mask_share + config.random_share
    shown = np.where(is_random, pieces.ordinary_ids[other.astype(np.int64)], targets)
    masked_BL = ids_BL.copy()
    masked_BL[rows, columns] = np.where(kind < config.mask_share, pieces.mask_id, shown)
    most = most_predictions(ids_BL.shape[1], config.share)
    found_B = chosen_BL.sum(axis=1)
    slots = np.arange(len(rows)) - np.repeat(np.cumsum(found_B) - found_B, found_B)
    positions_BM = np.zeros((len(ids_BL), most), np.int64)
    targets_BM = np.full((len(ids_BL), most), IGNORED, np.int64)
    positions_BM[rows, slots] = columns
    targets_BM[rows, slots] = targets
    return Masked(masked_BL, positions_BM, targets_BM)


def row_keys(seed: int, config: MaskingConfig, epochs_B: NDArray[np.int64], rows_B: NDArray[np.int64]) -> Words:
    """Keys of rows: static masks repeat after ``duplicates`` epochs, dynamic ones never (Table 31)."""
    passes_B = epochs_B % config.duplicates if config.mode == "static" else epochs_B
    return draw_words(draw_words(derive_key(seed, "masks"), passes_B), rows_B)


def _word_starts(ids_BL: NDArray[np.int64], special_BL: NDArray[np.bool_], pieces: Pieces) -> NDArray[np.bool_]:
    """Where words begin; a block may open in the middle of a word, whose rest then is a word."""
    after_special_BL = np.ones_like(special_BL)
    after_special_BL[:, 1:] = special_BL[:, :-1]
    return ~special_BL & (~pieces.continues_V[ids_BL] | after_special_BL)


def _choose_words(
    starts_BL: NDArray[np.bool_],
    special_BL: NDArray[np.bool_],
    budget_B: NDArray[np.int64],
    row_keys_B: Words,
) -> NDArray[np.bool_]:
    """Take words in the order of their draws while they fit into the row's budget."""
    count, length = starts_BL.shape
    columns_L = np.arange(length)
    # the position rides in the low bits of its draw, so sorting draws sorts positions
    draws_BL = draw_words(row_keys_B[:, None], columns_L[None]) << _POSITION_BITS | columns_L.astype(np.uint64)
    draws_BL[~starts_BL] = np.uint64(2**64 - 1)
    draws_BL.sort(axis=1)
    words = int(starts_BL.sum(axis=1).max(initial=0))
    order_BW = (draws_BL[:, :words] & np.uint64((1 << 16) - 1)).astype(np.int64)
    alive_BW = np.arange(words) < starts_BL.sum(axis=1)[:, None]
    order_BW[~alive_BW] = 0
    sizes_BW = np.where(alive_BW, np.take_along_axis(_word_sizes(starts_BL, special_BL), order_BW, 1), 0)
    taken_BW = np.zeros_like(alive_BW)
    left_B = budget_B.copy()
    while alive_BW.any():
        fits_BW = alive_BW & (np.cumsum(sizes_BW * alive_BW, axis=1) <= left_B[:, None])
        # all before the first word that does not fit are taken; behind it the sums no longer hold
        fits_BW &= np.logical_and.accumulate(fits_BW | ~alive_BW, axis=1)
        taken_BW |= fits_BW
        left_B = left_B - (sizes_BW * fits_BW).sum(axis=1)
        alive_BW &= ~fits_BW & (sizes_BW <= left_B[:, None])
    chosen_start_BL = np.zeros((count, length), bool)
    rows, ranks = np.nonzero(taken_BW)
    chosen_start_BL[rows, order_BW[rows, ranks]] = True
    start_of_BL = np.maximum.accumulate(np.where(starts_BL, columns_L, 0), axis=1)
    return np.take_along_axis(chosen_start_BL, start_of_BL, 1) & ~special_BL


def _word_sizes(starts_BL: NDArray[np.bool_], special_BL: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Pieces from each word start to the next start, special piece or end of the row."""
    length = starts_BL.shape[1]
    columns_L = np.arange(length)
    border_BL = np.where(starts_BL | special_BL, columns_L, length)
    next_BL = np.full_like(border_BL, length)
    next_BL[:, :-1] = np.minimum.accumulate(border_BL[:, :0:-1], axis=1)[:, ::-1]
    return next_BL - columns_L
