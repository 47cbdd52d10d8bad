"""Masked batches of a step, a pure function of (config, step, rank, ranks), made ready two steps ahead.

Sequence number ``(step - 1) * global_batch + i`` stands at place i of a step (counted anew where the length changes);
a rank takes a contiguous part of the places. Order, masks and pairs depend on the sequence number alone, so any number
of ranks, any micro batch and any restart see the same global batches, and jumping to a step costs milliseconds
(with sentence pairs, the time to lay out the passes before it). Looking ahead changes nothing either, and one thread is
enough: numpy lets go of the interpreter in its loops, and some 10 million tokens a second are made.

Shapes: B sequences, L positions, M most predictions in a sequence.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pretrain.config import PretrainConfig
from pretrain.rng import derive_key, permute
from pretrain.rows.masking import IGNORED, Masked, Pieces, mask_rows, row_keys
from pretrain.rows.sources import Rows, RowSource
from pretrain.rows.split import Split

AHEAD = 2  # steps made ready while the device computes


class Batch(NamedTuple):
    """What the model takes; the last three are None for full blocks.

    Fields:
        ids_BL: int64, masked.
        positions_BM, targets_BM: places and pieces to predict (see ``Masked``).
        types_BL, lengths_BS, is_random_BS: see ``Rows``.
    """

    ids_BL: Tensor
    positions_BM: Tensor
    targets_BM: Tensor
    types_BL: Tensor | None = None
    lengths_BS: Tensor | None = None
    is_random_BS: Tensor | None = None

    @property
    def predictions(self) -> int:
        """Number of targets that count."""
        return int((self.targets_BM != IGNORED).sum())

    @property
    def pairs(self) -> int:
        """Number of sentence pairs that count."""
        return 0 if self.is_random_BS is None else int((self.is_random_BS != IGNORED).sum())

    @property
    def tokens(self) -> int:
        """Tokens, padding left out."""
        return self.ids_BL.numel() if self.lengths_BS is None else int(self.lengths_BS.sum())

    def pinned(self) -> Batch:
        """The batch in memory that a GPU can read by itself."""
        fields: list[Any] = [None if field is None else field.pin_memory() for field in self]
        return Batch(*fields)

    def to(self, device: torch.device) -> Batch:
        """The batch on a device."""
        fields: list[Any] = [None if field is None else field.to(device, non_blocking=True) for field in self]
        return Batch(*fields)

    def split(self, size: int) -> list[Batch]:
        """Batches of ``size`` sequences in order."""
        count = -(-len(self.ids_BL) // size)
        parts: list[Any] = [[None] * count if field is None else field.split(size) for field in self]
        return [Batch(*fields) for fields in zip(*parts, strict=True)]


class Phase(NamedTuple):
    """Steps of one sequence length: rows of so many tokens, and the steps behind which it begins and ends."""

    source: RowSource
    length: int
    after: int
    last: int


class Order:
    """The endless sequence of rows: epoch after epoch, each in its own order.

    Args:
        rows_in: number of rows of an epoch (epochs of sentence pairs differ in size).
        seed: names the order.
    """

    def __init__(self, rows_in: Callable[[int], int], seed: int) -> None:
        self._rows_in = rows_in
        self._seed = seed
        self._ends: list[int] = []  # sequences up to and including each epoch met so far

    def locate(self, sequences: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Epoch and row of each global sequence number (0 is the first sequence of the first step)."""
        while not self._ends or self._ends[-1] <= sequences.max():
            self._ends.append((self._ends[-1] if self._ends else 0) + self._rows_in(len(self._ends)))
        ends = np.array(self._ends)
        epochs = np.searchsorted(ends, sequences, side="right")
        rows = np.empty_like(sequences)
        for epoch in np.unique(epochs):
            here = epochs == epoch
            size = self._rows_in(int(epoch))
            rows[here] = permute(
                sequences[here] - (ends[epoch] - size), size, derive_key(self._seed, "order", int(epoch))
            )
        return epochs, rows


class TrainingBatches:
    """Micro-batches of a rank for any step.

    Args:
        split: the training rows, short ones for the first steps where there are any.
        pieces: what masking knows of the vocabulary.
        rank, ranks: this process among all.
        micro_batch: sequences per micro-batch; divides ``global_batch / ranks``.
    """

    def __init__(
        self, split: Split, pieces: Pieces, config: PretrainConfig, rank: int, ranks: int, micro_batch: int
    ) -> None:
        self._pieces, self._config = pieces, config
        short_steps = round(config.steps * config.rows.short_length_share) if split.short else 0
        self.phases = [Phase(split.training, config.rows.sequence_length, short_steps, config.steps)]
        if split.short and config.rows.short_length:
            self.phases.insert(0, Phase(split.short, config.rows.short_length, 0, short_steps))
        self._orders = [Order(phase.source.count, config.seed) for phase in self.phases]
        self._share = config.global_batch // ranks
        self._offset = rank * self._share
        self._micro_batch = micro_batch

    def of_step(self, step: int) -> list[Batch]:
        """The micro-batches of step 1, 2, …"""
        source, epochs_B, rows_B = self._locate(step, self._offset, self._share)
        rows = source.gather(epochs_B, rows_B)
        return mask_batch(rows, epochs_B, self._pieces, self._config).split(self._micro_batch)

    def names_of_step(self, step: int) -> list[str]:
        """What a whole step is made of, over all ranks: epoch and row of each sequence, "0:1234"."""
        _, epochs_B, rows_B = self._locate(step, 0, self._config.global_batch)
        return [f"{epoch}:{row}" for epoch, row in zip(epochs_B.tolist(), rows_B.tolist(), strict=True)]

    def progress(self, step: int) -> dict[str, Any]:
        """How far the training is behind a step: step, sequences, epochs."""
        epochs = 0.0
        for phase in self.phases:
            done = max(0, min(step, phase.last) - phase.after) * self._config.global_batch
            epochs += done / phase.source.count(0)
        return {"step": step, "sequences": step * self._config.global_batch, "epochs": round(epochs, 3)}

    def phase_of(self, step: int) -> int:
        """Which of the phases a step belongs to."""
        return next((n for n, phase in enumerate(self.phases) if step <= phase.last), len(self.phases) - 1)

    def _locate(self, step: int, offset: int, count: int) -> tuple[RowSource, NDArray[np.int64], NDArray[np.int64]]:
        number = self.phase_of(step)
        phase = self.phases[number]
        first = (step - phase.after - 1) * self._config.global_batch + offset
        return phase.source, *self._orders[number].locate(np.arange(first, first + count))


def mask_batch(rows: Rows, epochs_B: NDArray[np.int64], pieces: Pieces, config: PretrainConfig) -> Batch:
    """Rows as the model takes them, wearing the masks of their epochs."""
    keys_B = row_keys(config.seed, config.rows.masking, epochs_B, rows.names_B)
    return as_batch(rows, mask_rows(rows, keys_B, pieces, config.rows.masking))


def as_batch(rows: Rows, masked: Masked) -> Batch:
    """Rows and their masks as tensors."""
    rest = (rows.types_BL, rows.lengths_BS, rows.is_random_BS)
    return Batch(
        *map(torch.from_numpy, masked), *(None if field is None else torch.from_numpy(field) for field in rest)
    )


class ReadyStep(NamedTuple):
    """A step's micro-batches of this process, pinned where there is a GPU.

    Fields:
        waited_s: seconds the training stood still for them.
    """

    step: int
    batches: list[Batch]
    waited_s: float


def ready_steps(batches: TrainingBatches, first: int, last: int, device: torch.device) -> Iterator[ReadyStep]:
    """Steps ``first`` to ``last``, both included."""

    def prepare(step: int) -> list[Batch]:
        found = batches.of_step(step)
        return [batch.pinned() for batch in found] if device.type == "cuda" else found

    with ThreadPoolExecutor(1, "batches") as thread:
        coming: deque[tuple[int, Future[list[Batch]]]] = deque()
        step = first
        try:
            while step <= last or coming:
                while step <= last and len(coming) < AHEAD:
                    coming.append((step, thread.submit(prepare, step)))
                    step += 1
                began = time.monotonic()
                number, future = coming.popleft()
                found = future.result()
                yield ReadyStep(number, found, time.monotonic() - began)
        finally:
            for _, future in coming:
                future.cancel()
