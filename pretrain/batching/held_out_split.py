"""Which rows are held out: the split of a token store into training and held-out rows.

The store is split once. Blocks, or documents where rows are made of documents or pairs, get a fixed order by the seed,
and the first ``rows.held_out_share`` of them are held out, at every row length. ``pretrain.metrics.held_out`` measures
the loss on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from corpus.documents.errors import BadInput
from pretrain.batching.masking import DUPLICATES
from pretrain.batching.mixture import EVERYTHING
from pretrain.batching.packing import Packed, Segments
from pretrain.batching.pairs import Pairs
from pretrain.batching.sources import ROWS_AT_ONCE, Blocks, Documents, Numbers, RowSource, total_blocks
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
        self, length: int, weights: Mapping[str, float] | float | None = None
    ) -> tuple[RowSource, dict[str, int], dict[str, float]]:
        """Training rows by source, the number of each, and weights; without weights, all as one source.

        A number is the power of natural shares. BadInput: an unknown source, or none with rows and a weight above 0.
        """
        if not weights:
            is_longest = length == self.config.rows.sequence_length
            rows = self.training if is_longest else self._training(length)
            return rows, {EVERYTHING: rows.count(0)}, {EVERYTHING: 1.0}
        names = self.store.source_names
        if isinstance(weights, float):
            rows, sizes, _ = self.training_rows(length, dict.fromkeys(names, 1.0))
            return rows, sizes, {name: size ** (weights - 1) for name, size in sizes.items()}
        unknown = sorted(weights.keys() - {*names, OTHER_SOURCES})
        if unknown:
            raise BadInput(
                f"pretrain.rows.sources: the token store has no source {', '.join(unknown)}; its sources are "
                f"{', '.join(names)} ({OTHER_SOURCES}: all that are not named)"
            )
        by_name = {name: weights.get(name, weights.get(OTHER_SOURCES, 1.0)) for name in names}
        rows, counts = self._by_source(length, [number for number, name in enumerate(names) if by_name[name] > 0])
        if not counts:
            raise BadInput("pretrain.rows.sources: no source with a weight above 0 has training rows; raise a weight")
        return rows, {names[number]: size for number, size in counts.items()}, by_name

    def _training(self, length: int) -> RowSource:
        rows = self._rows(length, self.held_out_units, self.total_units)
        return rows if self.config.rows.packing == "blocks" or isinstance(rows, Blocks) else self._packed(rows, length)

    def _by_source(self, length: int, numbers: list[int]) -> tuple[RowSource, dict[int, int]]:
        """Training rows of some sources, one after the other, and how many each has (at least one).

        The source of a row is that of its documents; a block belongs to the source in which it begins.
        """
        if self.config.rows.packing == "documents":
            documents = self._documents(self.held_out_units, self.total_units)
            documents = documents[_grouped(self.store.sources[documents], numbers)]
            segments = Documents(self.store, documents, length, self.config.rows.masking.unit)
            sources = self.store.sources[documents]
            begins, ends = (segments.first_row[np.searchsorted(sources, numbers, side)] for side in ("left", "right"))
            packed = self._packed(segments, length, begins[begins < ends])
            return packed, dict(zip(np.array(numbers)[begins < ends].tolist(), packed.sizes(0), strict=True))
        rows = self._rows(length, self.held_out_units, self.total_units)
        assert isinstance(rows, Blocks)  # pairs have no sources
        parts = [np.arange(*ends) for ends in pairwise([*range(0, rows.count(0), ROWS_AT_ONCE), rows.count(0)])]
        sources = np.concatenate([rows.sources(0, part).astype(SOURCE_TYPE) for part in parts])
        sizes = np.bincount(sources, minlength=len(self.store.source_names)).tolist()
        return rows.only(_grouped(sources, numbers)), {n: sizes[n] for n in numbers if sizes[n]}

    def _packed(self, rows: Segments, length: int, begins: Iterable[int] = (0,)) -> Packed:
        repeat = DUPLICATES if self.config.rows.masking.mode == "static" else None
        return Packed(rows, length, derive_key(self.config.seed, "packing"), repeat, begins)

    def _rows(self, length: int, first: int, stop: int) -> Blocks | Documents | Pairs:
        """Rows of units ``first`` to ``stop`` in the fixed order."""
        store, rows, key = self.store, self.config.rows, derive_key(self.config.seed, "split")
        if not _is_of_documents(self.config):
            return Blocks(store, length, rows.sequence_length, first, stop, key, rows.masking.unit)
        if self.config.model.nsp:
            return Pairs(store, self._documents(first, stop), length, self.config)
        return Documents(store, self._documents(first, stop), length, rows.masking.unit)

    def _documents(self, first: int, stop: int) -> Numbers:
        """Numbers of the documents at places ``first`` to ``stop`` of the fixed order, ascending."""
        return np.sort(permute(np.arange(first, stop), self.total_units, derive_key(self.config.seed, "split")))


def _grouped(sources_N: NDArray[np.unsignedinteger], numbers: list[int]) -> Numbers:
    """Where the given sources are, source after source."""
    order = np.argsort(sources_N, kind="stable")
    return order[np.isin(sources_N[order], numbers)]


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
