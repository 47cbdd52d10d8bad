"""Which rows are trained on and which are held out, for every length of the run.

Long blocks, or whole documents where rows are made of documents or pairs, are put into a fixed order; the first of
them are held out. Nothing held out is trained on at any length.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from corpus.documents.errors import BadInput
from pretrain.config import PretrainConfig
from pretrain.pack.store import TokenStore
from pretrain.rng import derive_key, permute
from pretrain.rows.packing import Packed
from pretrain.rows.pairs import Pairs
from pretrain.rows.sources import Blocks, Documents, RowSource, total_blocks


class Split(NamedTuple):
    """Rows of a run: ``short`` for its first steps (None where all steps are alike), ``training``, ``held_out``."""

    short: RowSource | None
    training: RowSource
    held_out: RowSource


def split_rows(store: TokenStore, config: PretrainConfig) -> Split:
    """Divide the store.

    Raises:
        BadInput: the corpus is too small to give both.
    """
    of_documents = config.model.nsp or config.rows.packing == "documents"
    least = 2 if config.model.nsp else 1  # a pair needs another document to draw from
    total = len(store.documents) - 1 if of_documents else total_blocks(store, config.rows.sequence_length)
    if total < 2 * least:
        what = "documents" if of_documents else f"blocks of {config.rows.sequence_length}"
        raise BadInput(
            f"the token store holds {len(store.tokens)} tokens, {total} {what}; training needs at least {2 * least}: "
            "give more text or a smaller pretrain.rows.sequence_length"
        )
    held_out = min(max(least, round(total * config.rows.held_out_share)), total - least)
    make = _segments if of_documents else _blocks
    short = None
    if config.rows.short_length is not None:
        short = _packed(
            make(store, config, config.rows.short_length, held_out, total), config, config.rows.short_length
        )
    training = _packed(
        make(store, config, config.rows.sequence_length, held_out, total), config, config.rows.sequence_length
    )
    return Split(short, training, make(store, config, config.rows.sequence_length, 0, held_out))


def _blocks(store: TokenStore, config: PretrainConfig, length: int, first: int, stop: int) -> RowSource:
    key = derive_key(config.seed, "split")
    return Blocks(store, length, config.rows.sequence_length, first, stop, key, config.rows.masking.unit)


def _segments(store: TokenStore, config: PretrainConfig, length: int, first: int, stop: int) -> RowSource:
    key = derive_key(config.seed, "split")
    documents = np.sort(permute(np.arange(first, stop), len(store.documents) - 1, key))
    if config.model.nsp:
        return Pairs(store, documents, length, config)
    return Documents(store, documents, length, config.rows.masking.unit)


def _packed(source: RowSource, config: PretrainConfig, length: int) -> RowSource:
    if config.rows.packing != "documents":
        return source
    assert isinstance(source, (Documents, Pairs))
    repeat = config.rows.masking.duplicates if config.rows.masking.mode == "static" else None
    return Packed(source, length, derive_key(config.seed, "packing"), repeat)
