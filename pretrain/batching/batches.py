"""The batches of every step, each a pure function of (config, step, rank, ranks), prepared two steps ahead.

Order, masks and pairs depend only on the number of a sequence, so any number of ranks, any micro-batch and any restart
see the same global batches.

Shapes: B sequences, L positions, M most predictions in a sequence, S segments of a sequence.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from pretrain.batching.held_out_split import Split
from pretrain.batching.masking import IGNORED, Masked, Pieces, mask_rows, row_keys
from pretrain.batching.sources import Numbers, Rows, RowSource
from pretrain.config import PretrainConfig
from pretrain.rng import derive_key, permute
from pretrain.schedule import Phase, of_phase, phases

STEPS_AHEAD = 2  # prepared while the device computes; one thread is enough, as numpy releases the interpreter lock


class Batch(NamedTuple):
    """The input of the model: ids, positions and targets of the predictions (see ``Masked``), and the rest of ``Rows``.

    Causal rows have no positions: every token predicts the next one, and M is L. ``borders_N`` and ``longest`` are for
    attention with variable lengths on GPUs (``compact_borders``).
    """

    ids_BL: Tensor
    positions_BM: Tensor | None
    targets_BM: Tensor
    types_BL: Tensor | None = None
    lengths_BS: Tensor | None = None
    is_random_BS: Tensor | None = None
    borders_N: Tensor | None = None
    longest: int | None = None

    @property
    def predictions(self) -> int:
        """Number of masked pieces to predict."""
        return 0 if self.positions_BM is None else int((self.targets_BM != IGNORED).sum())

    @property
    def others(self) -> int:
        """Number of targets of the other objective: next tokens of causal rows, or sentence pairs."""
        targets = self.targets_BM if self.positions_BM is None else self.is_random_BS
        return 0 if targets is None else int((targets != IGNORED).sum())

    @property
    def tokens(self) -> int:
        """Number of tokens without padding."""
        return self.ids_BL.numel() if self.lengths_BS is None else int(self.lengths_BS.sum())

    def each(self, change: Callable[[Tensor], Tensor]) -> Batch:
        fields: list[Any] = [change(field) if isinstance(field, Tensor) else field for field in self]
        return Batch(*fields)

    def with_borders(self) -> Batch:
        """With what attention with variable lengths needs; called where the lengths are on the host."""
        if self.lengths_BS is None or self.borders_N is not None:
            return self
        borders_N, longest = compact_borders(self.lengths_BS, self.ids_BL.shape[1])
        return self._replace(borders_N=borders_N, longest=longest)

    def to(self, device: torch.device) -> Batch:
        batch = self.with_borders() if device.type == "cuda" else self
        return batch.each(lambda field: field.to(device, non_blocking=True))

    def split(self, size: int) -> list[Batch]:
        parts = [slice(first, first + size) for first in range(0, len(self.ids_BL), size)]
        return [self.each(operator.itemgetter(part)) for part in parts]


def compact_borders(lengths_BS: Tensor, length: int) -> tuple[Tensor, int]:
    """Borders of the segments in the concatenated rows, int32, and the longest; padding is a segment too.

    Both numbers are rounded up to powers of two, so that compiled code sees few shapes; the last segments are empty.

    >>> compact_borders(torch.tensor([[3, 2, 0], [6, 0, 0]]), 6)
    (tensor([ 0,  3,  5,  6, 12], dtype=torch.int32), 6)
    """
    with_padding_BS = torch.cat([lengths_BS, length - lengths_BS.sum(1, keepdim=True)], dim=1)
    sizes_N = with_padding_BS[with_padding_BS > 0]
    borders_N = torch.full((1 + _power_of_two(len(sizes_N)),), len(lengths_BS) * length, dtype=torch.int32)
    borders_N[0], borders_N[1 : 1 + len(sizes_N)] = 0, sizes_N.cumsum(0)
    return borders_N, min(length, _power_of_two(int(sizes_N.max())))


def _power_of_two(number: int) -> int:
    """The smallest that is not below ``number``."""
    return 1 << (number - 1).bit_length()


class RowOrder:
    """The endless sequence of rows: epoch after epoch, each in its own order. Epochs of pairs differ in size."""

    def __init__(self, rows_in: Callable[[int], int], seed: int, first_epoch: int = 0) -> None:
        self._rows_in, self._seed, self._first_epoch = rows_in, seed, first_epoch
        self._ends: list[int] = []  # sequences up to and including each epoch so far

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
    """Micro-batches of process ``rank`` of ``ranks`` for any step; ``micro_batch`` comes from ``fit_micro_batch``.

    ``first_epoch``: the first epoch of the run, which decides order and masks; a branch starts with a new one.
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
            n: (source, RowOrder(source.count, config.seed, first_epoch))
            for n, source in sources.items()
            if n and source
        }

    def of_step(self, step: int) -> list[Batch]:
        """The micro-batches of step 1, 2, …"""
        config = self._configs[self.phase_of(step)]
        share = config.global_batch // self._ranks
        source, epochs_B, rows_B = self._locate(step, self._rank * share, share)
        rows = source.gather(epochs_B, rows_B)
        batch = causal_batch(rows) if config.is_causal else mask_batch(rows, epochs_B, self._pieces, config)
        return batch.split(self._micro_batch)

    def names_of_step(self, step: int, rank: int | None = None) -> list[str]:
        """Names of the rows of a step, or of a rank's part of it: epoch and row of each sequence, "0:1234"."""
        _, epochs_B, rows_B = self._locate(step, 0, self._config.global_batch)
        names = [f"{epoch}:{row}" for epoch, row in zip(epochs_B.tolist(), rows_B.tolist(), strict=True)]
        share = len(names) // self._ranks
        return names if rank is None else names[rank * share :][:share]

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
    """A batch of rows with the masks of their epochs."""
    keys_B = row_keys(config.seed, config.rows.masking, epochs_B, rows.names_B)
    return as_batch(rows, mask_rows(rows, keys_B, pieces, config.rows.masking))


def causal_batch(rows: Rows) -> Batch:
    """Rows in which every token but the last of a segment predicts the next one."""
    targets_BL = np.full_like(rows.ids_BL, IGNORED)
    targets_BL[:, :-1] = rows.ids_BL[:, 1:]
    if rows.lengths_BS is not None:
        ends_BS = rows.lengths_BS.cumsum(axis=1)
        targets_BL[np.arange(targets_BL.shape[1]) >= ends_BS[:, -1:]] = IGNORED
        targets_BL[np.arange(len(ends_BS))[:, None], ends_BS - 1] = IGNORED
    lengths_BS = None if rows.lengths_BS is None else torch.from_numpy(rows.lengths_BS)
    return Batch(torch.from_numpy(rows.ids_BL), None, torch.from_numpy(targets_BL), lengths_BS=lengths_BS)


def as_batch(rows: Rows, masked: Masked) -> Batch:
    """A batch of masked rows."""
    rest = (rows.types_BL, rows.lengths_BS, rows.is_random_BS)
    fields: list[Any] = [None if field is None else torch.from_numpy(field) for field in (*masked, *rest)]
    return Batch(*fields)


class ReadyStep(NamedTuple):
    """A step's micro-batches of this process, and the seconds that the training waited for them."""

    step: int
    batches: list[Batch]
    waited_s: float


def ready_steps(batches: TrainingBatches, first: int, last: int, device: torch.device) -> Iterator[ReadyStep]:
    """Steps ``first`` to ``last``, both included; in pinned memory, which a GPU reads directly, if there is a GPU."""

    def prepare(step: int) -> list[Batch]:
        found = batches.of_step(step)
        return [batch.with_borders().each(Tensor.pin_memory) for batch in found] if device.type == "cuda" else found

    # a new thread uses the first GPU, and would allocate there; a thread, as CUDA does not survive a fork
    own = None if device.index is None else partial(torch.accelerator.set_device_index, device)
    thread = ThreadPoolExecutor(1, "batches", own)
    try:
        coming = {step: thread.submit(prepare, step) for step in range(first, min(first + STEPS_AHEAD, last + 1))}
        for step in range(first, last + 1):
            began = time.monotonic()
            found = coming.pop(step).result()
            waited_s = time.monotonic() - began
            if step + STEPS_AHEAD <= last:
                coming[step + STEPS_AHEAD] = thread.submit(prepare, step + STEPS_AHEAD)
            yield ReadyStep(step, found, waited_s)
    finally:
        thread.shutdown(cancel_futures=True)
