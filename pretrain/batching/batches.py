"""Masked batches of a step, a pure function of (config, step, rank, ranks), made ready two steps ahead.

The store is divided once: blocks, or documents where rows are made of documents or pairs, are put into a fixed order;
the first of them are held out, at every length. Order, masks and pairs depend on the number of a sequence alone, so any
number of ranks, any micro batch and any restart see the same global batches, and jumping to a step costs milliseconds
(with pairs, the time to lay out the passes before it).

Shapes: B sequences, L positions, M most predictions in a sequence, S segments of a sequence.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from corpus.documents.errors import BadInput
from pretrain.batching.masking import IGNORED, Masked, Pieces, mask_rows, row_keys
from pretrain.batching.packing import Packed
from pretrain.batching.pairs import Pairs
from pretrain.batching.sources import Blocks, Documents, Numbers, Rows, RowSource, total_blocks
from pretrain.config import PretrainConfig
from pretrain.pack.store import TokenStore
from pretrain.rng import derive_key, permute
from pretrain.schedule import Phase, of_phase, phases

AHEAD = 2  # steps made ready while the device computes; one thread is enough, as numpy lets go of the interpreter


class Split(NamedTuple):
    """Rows of a run: ``short`` for its first steps (None where all steps are alike), ``training``, ``held_out``."""

    short: RowSource | None
    training: RowSource
    held_out: RowSource


def split_rows(store: TokenStore, config: PretrainConfig) -> Split:
    """Divide the store; BadInput where the corpus is too small to give both."""
    rows, nsp = config.rows, config.model.nsp
    of_documents = nsp or rows.packing == "documents"
    least = 2 if nsp else 1  # a pair needs another document to draw from
    total = len(store.documents) - 1 if of_documents else total_blocks(store, rows.sequence_length)
    if total < 2 * least:
        what = "documents" if of_documents else f"blocks of {rows.sequence_length}"
        raise BadInput(
            f"the token store holds {len(store.tokens)} tokens, {total} {what}; training needs at least {2 * least}: "
            "give more text or a smaller pretrain.rows.sequence_length"
        )
    held_out = min(max(least, round(total * rows.held_out_share)), total - least)
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
        repeat = rows.masking.duplicates if rows.masking.mode == "static" else None
        return Packed(found, length, derive_key(config.seed, "packing"), repeat)

    short = None if rows.short_length is None else training(rows.short_length)
    split = Split(short, training(rows.sequence_length), source(rows.sequence_length, 0, held_out))
    if nsp and not (split.training.count(0) and split.held_out.count(0)):
        raise BadInput(
            "no document of the training or of the held-out part has two sentences to make a pair of; set "
            "pretrain.rows.nsp_balance=bert or raise pretrain.rows.held_out_share"
        )
    return split


class Batch(NamedTuple):
    """What the model takes: ids, where to predict and what (see ``Masked``), and the rest of ``Rows``.

    Causal rows have no positions: every token predicts the next one, and M is L.
    """

    ids_BL: Tensor
    positions_BM: Tensor | None
    targets_BM: Tensor
    types_BL: Tensor | None = None
    lengths_BS: Tensor | None = None
    is_random_BS: Tensor | None = None

    @property
    def predictions(self) -> int:
        """Masked pieces to predict."""
        return 0 if self.positions_BM is None else int((self.targets_BM != IGNORED).sum())

    @property
    def others(self) -> int:
        """What the objective beside masked words counts: next tokens of causal rows, or sentence pairs."""
        targets = self.targets_BM if self.positions_BM is None else self.is_random_BS
        return 0 if targets is None else int((targets != IGNORED).sum())

    @property
    def tokens(self) -> int:
        """Tokens, padding left out."""
        return self.ids_BL.numel() if self.lengths_BS is None else int(self.lengths_BS.sum())

    def each(self, change: Callable[[Tensor], Tensor]) -> Batch:
        fields: list[Any] = [None if field is None else change(field) for field in self]
        return Batch(*fields)

    def to(self, device: torch.device) -> Batch:
        return self.each(lambda field: field.to(device, non_blocking=True))

    def split(self, size: int) -> list[Batch]:
        parts = [slice(first, first + size) for first in range(0, len(self.ids_BL), size)]
        return [self.each(operator.itemgetter(part)) for part in parts]


class Order:
    """The endless sequence of rows: epoch after epoch (those of pairs differ in size), each in its own order."""

    def __init__(self, rows_in: Callable[[int], int], seed: int, first_epoch: int = 0) -> None:
        self._rows_in, self._seed, self._first_epoch = rows_in, seed, first_epoch
        self._ends: list[int] = []  # sequences up to and including each epoch met so far

    def locate(self, sequences: Numbers) -> tuple[Numbers, Numbers]:
        """Epoch and row of each global sequence number (0 is the first sequence of the first step)."""
        while not self._ends or self._ends[-1] <= sequences.max():
            size = self._rows_in(self._first_epoch + len(self._ends))
            self._ends.append((self._ends[-1] if self._ends else 0) + size)
        ends = np.array(self._ends)
        epochs = np.searchsorted(ends, sequences, side="right") + self._first_epoch
        rows = np.empty_like(sequences)
        for epoch in np.unique(epochs).tolist():
            here, size = epochs == epoch, self._rows_in(epoch)
            begin = ends[epoch - self._first_epoch] - size
            rows[here] = permute(sequences[here] - begin, size, derive_key(self._seed, "order", epoch))
        return epochs, rows


class TrainingBatches:
    """Micro-batches of process ``rank`` of ``ranks`` for any step; ``micro_batch`` is of ``fit_micro_batch``.

    The first ``config.causal_rows`` rows of a step are causal. As rows are shuffled anew each epoch, which they are is
    a draw by seed, epoch and row. All rows of a micro-batch are of one kind, and the share of a step is exact.
    ``first_epoch``: the epoch that the run begins with, for order and masks; those of a branch are new ones.
    """

    def __init__(
        self,
        split: Split,
        pieces: Pieces,
        config: PretrainConfig,
        rank: int,
        ranks: int,
        micro_batch: int,
        first_epoch: int = 0,
    ) -> None:
        self._pieces, self._config, self._micro_batch = pieces, config, micro_batch
        self._rank, self._ranks = rank, ranks
        self.phases = phases(config)
        self._configs = [of_phase(config, phase) for phase in self.phases]
        sources = {config.rows.short_length: split.short, config.rows.sequence_length: split.training}
        self._rows = {
            n: (source, Order(source.count, config.seed, first_epoch)) for n, source in sources.items() if n and source
        }

    def of_step(self, step: int) -> list[Batch]:
        """The micro-batches of step 1, 2, …; causal ones come first."""
        config, batches = self._configs[self.phase_of(step)], []
        border = config.causal_rows
        for first, last in ((0, border), (border, config.global_batch)):
            share = (last - first) // self._ranks
            if share:
                source, epochs_B, rows_B = self._locate(step, first + self._rank * share, share)
                rows = source.gather(epochs_B, rows_B)
                whole = mask_batch(rows, epochs_B, self._pieces, config) if first == border else causal_batch(rows)
                batches += whole.split(self._micro_batch)
        return batches

    def names_of_step(self, step: int, rank: int | None = None) -> list[str]:
        """What a whole step is made of, or a rank's part of it: epoch and row of each sequence, "0:1234"."""
        _, epochs_B, rows_B = self._locate(step, 0, self._config.global_batch)
        names = [f"{epoch}:{row}" for epoch, row in zip(epochs_B.tolist(), rows_B.tolist(), strict=True)]
        if rank is None:
            return names
        border, last = self._config.causal_rows, self._config.global_batch
        shares = [(0, border // self._ranks), (border, (last - border) // self._ranks)]
        return [name for first, share in shares for name in names[first + rank * share :][:share]]

    def progress(self, step: int) -> dict[str, Any]:
        epochs = 0.0
        for phase in self.phases:
            done = max(0, min(step, phase.last) - phase.after) * self._config.global_batch
            epochs += done / self.source_of(phase).count(0)
        return {"step": step, "sequences": step * self._config.global_batch, "epochs": round(epochs, 3)}

    def phase_of(self, step: int) -> int:
        return next((n for n, phase in enumerate(self.phases) if step <= phase.last), len(self.phases) - 1)

    def source_of(self, phase: Phase) -> RowSource:
        return self._rows[phase.length][0]

    def _locate(self, step: int, offset: int, count: int) -> tuple[RowSource, Numbers, Numbers]:
        phase = self.phases[self.phase_of(step)]
        source, order = self._rows[phase.length]
        first = (step - phase.length_after - 1) * self._config.global_batch + offset
        return source, *order.locate(np.arange(first, first + count))


def mask_batch(rows: Rows, epochs_B: Numbers, pieces: Pieces, config: PretrainConfig) -> Batch:
    """Rows as the model takes them, wearing the masks of their epochs."""
    keys_B = row_keys(config.seed, config.rows.masking, epochs_B, rows.names_B)
    return as_batch(rows, mask_rows(rows, keys_B, pieces, config.rows.masking), config)


def causal_batch(rows: Rows) -> Batch:
    """Rows in which every token predicts the next one of its own segment; nothing follows the last."""
    targets_BL = np.full_like(rows.ids_BL, IGNORED)
    targets_BL[:, :-1] = rows.ids_BL[:, 1:]
    if rows.lengths_BS is not None:
        ends_BS = rows.lengths_BS.cumsum(axis=1)
        targets_BL[np.arange(targets_BL.shape[1]) >= ends_BS[:, -1:]] = IGNORED
        targets_BL[np.arange(len(ends_BS))[:, None], ends_BS - 1] = IGNORED
    lengths_BS = None if rows.lengths_BS is None else torch.from_numpy(rows.lengths_BS)
    return Batch(torch.from_numpy(rows.ids_BL), None, torch.from_numpy(targets_BL), lengths_BS=lengths_BS)


def as_batch(rows: Rows, masked: Masked, config: PretrainConfig) -> Batch:
    """Masked rows for the model; beside causal rows a piece is predicted one place before it, as theirs are."""
    if config.model.objective == "hybrid":  # the first token of a segment is [CLS], never masked
        masked = masked._replace(positions_BM=np.maximum(masked.positions_BM - 1, 0))
    rest = (rows.types_BL, rows.lengths_BS, rows.is_random_BS)
    return Batch(
        *map(torch.from_numpy, masked), *(None if field is None else torch.from_numpy(field) for field in rest)
    )


class ReadyStep(NamedTuple):
    """A step's micro-batches of this process, and for how many seconds the training stood still for them."""

    step: int
    batches: list[Batch]
    waited_s: float


def ready_steps(batches: TrainingBatches, first: int, last: int, device: torch.device) -> Iterator[ReadyStep]:
    """Steps ``first`` to ``last``, both included; pinned (a GPU reads them by itself) where there is a GPU."""

    def prepare(step: int) -> list[Batch]:
        found = batches.of_step(step)
        return [batch.each(Tensor.pin_memory) for batch in found] if device.type == "cuda" else found

    thread = ThreadPoolExecutor(1, "batches")
    try:
        coming = {step: thread.submit(prepare, step) for step in range(first, min(first + AHEAD, last + 1))}
        for step in range(first, last + 1):
            began = time.monotonic()
            found = coming.pop(step).result()
            waited_s = time.monotonic() - began
            if step + AHEAD <= last:
                coming[step + AHEAD] = thread.submit(prepare, step + AHEAD)
            yield ReadyStep(step, found, waited_s)
    finally:
        thread.shutdown(cancel_futures=True)
