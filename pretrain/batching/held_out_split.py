"""Which rows are held out: the split of a token store into training and held-out rows.

The store is split once. Blocks, or documents where rows are made of documents or pairs, get a fixed order by the seed,
and the first ``rows.held_out_share`` of them are held out, at every row length. ``pretrain.metrics.held_out`` measures
the loss on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from corpus.documents.errors import BadInput
from pretrain.batching.masking import DUPLICATES
from pretrain.batching.mixture import EVERYTHING
from pretrain.batching.packing import Packed
from pretrain.batching.pairs import Pairs
from pretrain.batching.sources import ROWS_AT_ONCE, Blocks, Documents, RowSource, Selected, total_blocks
from pretrain.config import PretrainConfig
from pretrain.pack.store import SOURCE_TYPE, TokenStore
from pretrain.rng import derive_key, permute

OTHER_SOURCES = "other"  # in pretrain.rows.sources: all sources that are not named


@dataclass(frozen=True)
class Split:
    """Rows of a run: held-out ones of the longest length, and training rows of any length and mixture."""

    store: TokenStore
    config: PretrainConfig
    held_out_units: int
    total_units: int

    @cached_property
    def training(self) -> RowSource:
        """All training rows of the longest length."""
        return self._training(self.config.rows.sequence_length)

    @cached_property
    def held_out(self) -> RowSource:
        return self._rows(self.config.rows.sequence_length, 0, self.held_out_units)

    def training_rows(
        self, length: int, weights: Mapping[str, float] | None = None
    ) -> tuple[dict[str, RowSource], dict[str, float]]:
        """Training rows by source, and their weights; without weights, all rows as one source.

        BadInput: a source that the store does not have, or no source with rows and a weight above 0.
        """
        if not weights:
            is_longest = length == self.config.rows.sequence_length
            return {EVERYTHING: self.training if is_longest else self._training(length)}, {EVERYTHING: 1.0}
        names = self.store.source_names
        unknown = sorted(weights.keys() - {*names, OTHER_SOURCES})
        if unknown:
            raise BadInput(
                f"pretrain.rows.sources: the token store has no source {', '.join(unknown)}; its sources are "
                f"{', '.join(names)} ({OTHER_SOURCES}: all that are not named)"
            )
        by_name = {name: weights.get(name, weights.get(OTHER_SOURCES, 1.0)) for name in names}
        rows = {name: rows for name, rows in zip(names, self._by_source(length), strict=True) if rows.count(0)}
        rows = {name: source for name, source in rows.items() if by_name[name] > 0}
        if not rows:
            raise BadInput("pretrain.rows.sources: no source with a weight above 0 has training rows; raise a weight")
        return rows, by_name

    def _training(self, length: int, source: int | None = None) -> RowSource:
        found = self._rows(length, self.held_out_units, self.total_units, source)
        if self.config.rows.packing != "documents" or isinstance(found, Blocks):
            return found
        repeat = DUPLICATES if self.config.rows.masking.mode == "static" else None
        return Packed(found, length, derive_key(self.config.seed, "packing"), repeat)

    def _by_source(self, length: int) -> Iterator[RowSource]:
        """Training rows by the source of their documents; a block belongs to the source in which it begins."""
        numbers = range(len(self.store.source_names))
        if self.config.rows.packing == "documents":
            yield from (self._training(length, number) for number in numbers)
            return
        rows = self._training(length)
        begins = range(0, rows.count(0), ROWS_AT_ONCE)
        parts = [np.arange(begin, min(begin + ROWS_AT_ONCE, rows.count(0))) for begin in begins]
        sources = np.concatenate([rows.sources(0, part).astype(SOURCE_TYPE) for part in parts])
        yield from (Selected(rows, np.flatnonzero(sources == number)) for number in numbers)

    def _rows(self, length: int, first: int, stop: int, source: int | None = None) -> Blocks | Documents | Pairs:
        """Rows of units ``first`` to ``stop`` in the fixed order, or of the documents of a source among them."""
        store, rows, key = self.store, self.config.rows, derive_key(self.config.seed, "split")
        if not _is_of_documents(self.config):
            return Blocks(store, length, rows.sequence_length, first, stop, key, rows.masking.unit)
        documents = np.sort(permute(np.arange(first, stop), self.total_units, key))
        if source is not None:
            documents = documents[store.sources[documents] == source]
        if self.config.model.nsp:
            return Pairs(store, documents, length, self.config)
        return Documents(store, documents, length, rows.masking.unit)


def split_rows(store: TokenStore, config: PretrainConfig) -> Split:
    """Split the store into training and held-out rows; BadInput if the corpus is too small for both."""
    of_documents, length = _is_of_documents(config), config.rows.sequence_length
    min_units = 2 if config.model.nsp else 1  # a pair needs another document to draw from
    total = len(store.documents) - 1 if of_documents else total_blocks(store, length)
    if total < 2 * min_units:
        what = "documents" if of_documents else f"blocks of {length}"
        raise BadInput(
            f"the token store holds {len(store.tokens)} tokens, {total} {what}; training needs at least "
            f"{2 * min_units}: give more text or lower pretrain.rows.sequence_length"
        )
    held_out = min(max(min_units, round(total * config.rows.held_out_share)), total - min_units)
    return Split(store, config, held_out, total)


def _is_of_documents(config: PretrainConfig) -> bool:
    """Whether rows are made of documents or pairs, and not of blocks."""
    return config.model.nsp or config.rows.packing == "documents"
