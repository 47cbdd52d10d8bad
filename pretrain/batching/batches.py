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
from pretrain.batching.masking import IGNORED, Pieces, mask_rows, row_keys
from pretrain.batching.mixture import Mixture, Places
from pretrain.batching.sources import Numbers, Rows
from pretrain.config import PretrainConfig
from pretrain.schedule import Phase, phases

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


def largest_divisor(number: int, limit: int) -> int:
    """The largest divisor of a number that is not above ``limit``."""
    return max(size for size in range(1, min(limit, number) + 1) if number % size == 0)


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
        self._source_names = split.store.source_names if any(p.config.rows.sources for p in self.phases) else []
        self._mixtures: dict[Any, Mixture] = {}
        for phase in self.phases:
            if phase.rows_key not in self._mixtures:
                rows = split.training_rows(phase.length, phase.config.rows.sources)
                self._mixtures[phase.rows_key] = Mixture(*rows, config.seed, first_epoch)

    def of_step(self, step: int) -> list[Batch]:
        """The micro-batches of step 1, 2, …"""
        phase = self.phase_at(step)
        config, share = phase.config, phase.config.global_batch // self._ranks
        mixture, places = self._locate(step, self._rank * share, share)
        batch = make_batch(mixture.gather(places), places.epochs_B, self._pieces, config)
        return batch.split(largest_divisor(share, self._micro_batch))

    def names_of_step(self, step: int, rank: int | None = None) -> list[str]:
        """Names of the rows of a step, or of a rank's part of it: epoch and row of each sequence, "0:1234"."""
        mixture, places = self._locate(step, 0, self.phase_at(step).config.global_batch)
        names = mixture.names_of(places)
        share = len(names) // self._ranks
        return names if rank is None else names[rank * share :][:share]

    def progress(self, step: int) -> dict[str, Any]:
        """Steps, sequences and epochs so far; in a mixture also the epochs of each source."""
        sequences, epochs, by_source = 0, 0.0, dict.fromkeys(self._source_names, 0.0)
        for phase in self.phases:
            done, mixture = phase.sequences_until(step), self._mixtures[phase.rows_key]
            sequences, epochs = sequences + done, epochs + done / mixture.rows
            for name in by_source:
                by_source[name] += mixture.epochs_of(name, done)
        mixed = {"source_epochs": {name: round(n, 3) for name, n in by_source.items()}} if by_source else {}
        return {"step": step, "sequences": sequences, "epochs": round(epochs, 3), **mixed}

    def phase_of(self, step: int) -> int:
        return next((n for n, phase in enumerate(self.phases) if step <= phase.last), len(self.phases) - 1)

    def phase_at(self, step: int) -> Phase:
        return self.phases[self.phase_of(step)]

    def mixture_of(self, phase: Phase) -> Mixture:
        return self._mixtures[phase.rows_key]

    def _locate(self, step: int, offset: int, count: int) -> tuple[Mixture, Places]:
        phase = self.phase_at(step)
        mixture, first = self.mixture_of(phase), phase.first_sequence(step) + offset
        return mixture, mixture.locate(np.arange(first, first + count))


def make_batch(rows: Rows, epochs_B: Numbers, pieces: Pieces, config: PretrainConfig) -> Batch:
    """A batch of causal rows, or of rows with the masks of their epochs."""
    if config.is_causal:
        return causal_batch(rows)
    keys_B = row_keys(config.seed, config.rows.masking, epochs_B, rows.names_B)
    masked = mask_rows(rows, keys_B, pieces, config.rows.masking)
    rest = (rows.types_BL, rows.lengths_BS, rows.is_random_BS)
    fields: list[Any] = [None if field is None else torch.from_numpy(field) for field in (*masked, *rest)]
    return Batch(*fields)


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


class ReadyStep(NamedTuple):
    """A step's micro-batches of this process, and the seconds that the training waited for them."""

    step: int
    batches: list[Batch]
    waited_s: float


def ready_steps(batches: TrainingBatches, first: int, last: int, device: torch.device) -> Iterator[ReadyStep]:
    """Steps ``first`` to ``last``, both included; in pinned memory, which a GPU reads directly, if there is a GPU."""

    def prepare(step: int) -> list[Batch]:
        loaded = batches.of_step(step)
        return [batch.with_borders().each(Tensor.pin_memory) for batch in loaded] if device.type == "cuda" else loaded

    # a new thread uses the first GPU, and would allocate there; a thread, as CUDA does not survive a fork
    own = None if device.index is None else partial(torch.accelerator.set_device_index, device)
    thread = ThreadPoolExecutor(1, "batches", own)
    try:
        coming = {step: thread.submit(prepare, step) for step in range(first, min(first + STEPS_AHEAD, last + 1))}
        for step in range(first, last + 1):
            began = time.monotonic()
            micro_batches = coming.pop(step).result()
            waited_s = time.monotonic() - began
            if step + STEPS_AHEAD <= last:
                coming[step + STEPS_AHEAD] = thread.submit(prepare, step + STEPS_AHEAD)
            yield ReadyStep(step, micro_batches, waited_s)
    finally:
        thread.shutdown(cancel_futures=True)
