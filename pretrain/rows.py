"""Unmasked training rows from the token store: full blocks (RoBERTa) or sentence pairs (BERT).

Blocks are FULL-SENTENCES of RoBERTa: the corpus as one stream with a separator after each document, cut every
``length - 2`` pieces, so no position is padding. Which rows are held out is settled by a fixed permutation of blocks
(or, for pairs, of documents); the remaining tail of the stream that fills no block is left out.

Shapes: B rows, L positions.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pretrain.config import BadInput, PretrainConfig
from pretrain.draws import derive_key
from pretrain.nsp import Sentences, lay_out_pass
from pretrain.order import permute
from pretrain.store import TokenStore, piece_ids


class Rows(NamedTuple):
    """Rows before masking.

    Fields:
        ids_BL: int64, padded with [PAD] behind ``lengths_B``.
        lengths_B: tokens of each row, special pieces counted.
        names_B: what the row is called when masks are drawn: the same name and epoch give the same mask.
        types_BL: 0 for A, 1 for B; None for blocks.
        is_random_B: 1 where B does not follow A; None for blocks.
    """

    ids_BL: NDArray[np.int64]
    lengths_B: NDArray[np.int64]
    names_B: NDArray[np.int64]
    types_BL: NDArray[np.int64] | None = None
    is_random_B: NDArray[np.int64] | None = None


class RowSource(Protocol):
    """Rows by epoch and number."""

    def count(self, epoch: int) -> int:
        """Number of rows of an epoch."""

    def gather(self, epochs_B: NDArray[np.int64], rows_B: NDArray[np.int64]) -> Rows:
        """The rows asked for, in that order."""


class Blocks:
    """Full blocks ``first`` to ``stop`` (exclusive) of the fixed permutation of all blocks of the store."""

    def __init__(self, store: TokenStore, config: PretrainConfig, first: int, stop: int) -> None:
        self._store = store
        self._pieces = config.sequence_length - 2
        self._total = total_blocks(store, config)
        self._first, self._stop = first, stop
        self._key = derive_key(config.seed, "split")

    def count(self, epoch: int) -> int:
        return self._stop - self._first

    def gather(self, epochs_B: NDArray[np.int64], rows_B: NDArray[np.int64]) -> Rows:
        names_B = permute(self._first + rows_B, self._total, self._key)
        inside_BL = names_B[:, None] * self._pieces + np.arange(self._pieces)
        special_ids = self._store.meta["special_ids"]
        ids_BL = np.empty((len(rows_B), self._pieces + 2), np.int64)
        ids_BL[:, 0], ids_BL[:, -1] = special_ids["cls"], special_ids["sep"]
        ids_BL[:, 1:-1] = piece_ids(self._store.tokens[inside_BL])
        return Rows(ids_BL, np.full(len(rows_B), self._pieces + 2), names_B)


class Pairs:
    """Sentence pairs of documents ``first`` to ``stop`` (exclusive) of the fixed permutation of all documents.

    Passes over the corpus repeat after ``masking.duplicates`` epochs, as the copies of google-research/bert do.
    """

    def __init__(self, store: TokenStore, config: PretrainConfig, first: int, stop: int) -> None:
        key = derive_key(config.seed, "split")
        documents = permute(np.arange(first, stop), len(store.documents) - 1, key)
        sentences = Sentences(store, documents)
        self._store = store
        self._length = config.sequence_length
        self._passes = config.masking.duplicates
        self._layout = lru_cache(maxsize=2)(
            lambda number: lay_out_pass(sentences, self._length, config.short_share, config.seed, number)
        )

    def count(self, epoch: int) -> int:
        return len(self._layout(epoch % self._passes))

    def gather(self, epochs_B: NDArray[np.int64], rows_B: NDArray[np.int64]) -> Rows:
        special_ids = self._store.meta["special_ids"]
        ids_BL = np.full((len(rows_B), self._length), special_ids["pad"], np.int64)
        types_BL = np.zeros_like(ids_BL)
        lengths_B = np.empty(len(rows_B), np.int64)
        is_random_B = np.empty(len(rows_B), np.int64)
        for place, (epoch, row) in enumerate(zip(epochs_B.tolist(), rows_B.tolist(), strict=True)):
            a_begin, a_end, b_begin, b_end, is_random_B[place] = self._layout(epoch % self._passes)[row]
            first_of_b, length = a_end - a_begin + 2, a_end - a_begin + b_end - b_begin + 3
            ids_BL[place, 0] = special_ids["cls"]
            ids_BL[place, 1 : first_of_b - 1] = piece_ids(self._store.tokens[a_begin:a_end])
            ids_BL[place, first_of_b : length - 1] = piece_ids(self._store.tokens[b_begin:b_end])
            ids_BL[place, [first_of_b - 1, length - 1]] = special_ids["sep"]
            types_BL[place, first_of_b:length] = 1
            lengths_B[place] = length
        return Rows(ids_BL, lengths_B, rows_B, types_BL, is_random_B)


def total_blocks(store: TokenStore, config: PretrainConfig) -> int:
    """Full blocks in the store."""
    return len(store.tokens) // (config.sequence_length - 2)


def split_rows(store: TokenStore, config: PretrainConfig) -> tuple[RowSource, RowSource]:
    """Training rows and held-out rows.

    Raises:
        BadInput: the corpus is too small to give both.
    """
    kind: type[Blocks] | type[Pairs]
    if config.nsp:
        kind, total, least, what = Pairs, len(store.documents) - 1, 2, "documents"
    else:
        kind, total, least, what = Blocks, total_blocks(store, config), 1, f"blocks of {config.sequence_length}"
    if total < 2 * least:
        raise BadInput(
            f"the token store holds {len(store.tokens)} tokens, {total} {what}; training needs at least {2 * least}: "
            "give more text or a smaller pretrain.sequence_length"
        )
    held_out = min(max(least, round(total * config.held_out_share)), total - least)
    return kind(store, config, held_out, total), kind(store, config, 0, held_out)
