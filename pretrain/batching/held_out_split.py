"""Which rows are held out: the split of a token store into training and held-out rows.

The store is split once. Blocks, or documents where rows are made of documents or pairs, get a fixed order by the seed,
and the first ``rows.held_out_share`` of them are held out, at every row length. ``pretrain.metrics.held_out`` measures
the loss on them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from corpus.documents.errors import BadInput
from pretrain.batching.masking import DUPLICATES
from pretrain.batching.packing import Packed
from pretrain.batching.pairs import Pairs
from pretrain.batching.sources import Blocks, Documents, RowSource, total_blocks
from pretrain.config import PretrainConfig
from pretrain.pack.store import TokenStore
from pretrain.rng import derive_key, permute


class Split(NamedTuple):
    """Rows of a run: ``short`` for its first steps (None if all rows have one length), ``training``, ``held_out``."""

    short: RowSource | None
    training: RowSource
    held_out: RowSource


def split_rows(store: TokenStore, config: PretrainConfig) -> Split:
    """Split the store into training and held-out rows; BadInput if the corpus is too small for both."""
    rows, nsp = config.rows, config.model.nsp
    of_documents = nsp or rows.packing == "documents"
    min_units = 2 if nsp else 1  # a pair needs another document to draw from
    total = len(store.documents) - 1 if of_documents else total_blocks(store, rows.sequence_length)
    if total < 2 * min_units:
        what = "documents" if of_documents else f"blocks of {rows.sequence_length}"
        raise BadInput(
            f"the token store holds {len(store.tokens)} tokens, {total} {what}; training needs at least "
            f"{2 * min_units}: give more text or lower pretrain.rows.sequence_length"
        )
    held_out = min(max(min_units, round(total * rows.held_out_share)), total - min_units)
    key = derive_key(config.seed, "split")

    def source(length: int, first: int, stop: int) -> Blocks | Documents | Pairs:
        if not of_documents:
            return Blocks(store, length, rows.sequence_length, first, stop, key, rows.masking.unit)
        documents = np.sort(permute(np.arange(first, stop), total, key))
        return (
            Pairs(store, documents, length, config) if nsp else Documents(store, documents, length, rows.masking.unit)
        )

    def training(length: int) -> RowSource:
        found = source(length, held_out, total)
        if rows.packing != "documents" or isinstance(found, Blocks):
            return found
        repeat = DUPLICATES if rows.masking.mode == "static" else None
        return Packed(found, length, derive_key(config.seed, "packing"), repeat)

    short = None if rows.short_length is None else training(rows.short_length)
    return Split(short, training(rows.sequence_length), source(rows.sequence_length, 0, held_out))
