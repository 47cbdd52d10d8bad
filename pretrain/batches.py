"""Masked batches of a step: a pure function of (config, step, rank, ranks).

Sequence number ``(step - 1) * global_batch + i`` stands at place i of a step; a rank takes a contiguous part of the
places. Order, masks and pairs depend on the sequence number alone, so any number of ranks, any micro batch and any
restart see the same global batches, and jumping to a step costs milliseconds.

Shapes: B sequences, L positions, M most predictions in a sequence.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pretrain.config import MaskingConfig, PretrainConfig
from pretrain.masking import IGNORED, Masked, Pieces, mask_rows, row_keys
from pretrain.order import Order
from pretrain.rows import Rows, RowSource

HELD_OUT_EPOCH = 0  # held-out rows always wear the same masks


class Batch(NamedTuple):
    """What the model takes; the last three are None for full blocks.

    Fields:
        ids_BL: int64, masked.
        positions_BM, targets_BM: places and pieces to predict (see ``Masked``).
        types_BL: 0 for A, 1 for B.
        attention_BL: 1 for tokens, 0 for padding.
        is_random_B: 1 where B does not follow A.
    """

    ids_BL: Tensor
    positions_BM: Tensor
    targets_BM: Tensor
    types_BL: Tensor | None = None
    attention_BL: Tensor | None = None
    is_random_B: Tensor | None = None

    @property
    def predictions(self) -> int:
        """Number of targets that count."""
        return int((self.targets_BM != IGNORED).sum())

    def to(self, device: torch.device) -> Batch:
        """The batch on a device."""
        fields: list[Any] = [None if field is None else field.to(device, non_blocking=True) for field in self]
        return Batch(*fields)

    def split(self, size: int) -> list[Batch]:
        """Batches of ``size`` sequences in order."""
        count = -(-len(self.ids_BL) // size)
        parts: list[Any] = [[None] * count if field is None else field.split(size) for field in self]
        return [Batch(*fields) for fields in zip(*parts, strict=True)]


class TrainingBatches:
    """Micro-batches of a rank for any step.

    Args:
        source: the training rows.
        pieces: what masking knows of the vocabulary.
        rank, ranks: this process among all.
        micro_batch: sequences per micro-batch; divides ``global_batch / ranks``.
    """

    def __init__(
        self, source: RowSource, pieces: Pieces, config: PretrainConfig, rank: int, ranks: int, micro_batch: int
    ) -> None:
        self._source, self._pieces, self._config = source, pieces, config
        self._order = Order(source.count, config.seed)
        self._share = config.global_batch // ranks
        self._offset = rank * self._share
        self._micro_batch = micro_batch

    def of_step(self, step: int) -> list[Batch]:
        """The micro-batches of step 1, 2, …"""
        first = (step - 1) * self._config.global_batch + self._offset
        epochs_B, rows_B = self._order.locate(np.arange(first, first + self._share))
        rows = self._source.gather(epochs_B, rows_B)
        masked = _mask(rows, epochs_B, self._pieces, self._config.masking, self._config.seed)
        return _as_batch(rows, masked).split(self._micro_batch)


def held_out_batches(
    source: RowSource, pieces: Pieces, config: PretrainConfig, rank: int, ranks: int, micro_batch: int
) -> Iterator[Batch]:
    """This rank's part of the held-out rows; every rank gets the same number of batches.

    The last round is filled up with repeated rows whose targets do not count.
    """
    count = source.count(HELD_OUT_EPOCH)
    for start in range(rank * micro_batch, count + rank * micro_batch, ranks * micro_batch):
        numbers_B = np.arange(start, start + micro_batch)
        rows_B = np.minimum(numbers_B, count - 1)
        epochs_B = np.full(micro_batch, HELD_OUT_EPOCH)
        rows = source.gather(epochs_B, rows_B)
        masked = _mask(rows, epochs_B, pieces, config.masking, config.seed)
        masked.targets_BM[numbers_B >= count] = IGNORED
        if rows.is_random_B is not None:
            rows.is_random_B[numbers_B >= count] = IGNORED
        yield _as_batch(rows, masked)


def _mask(rows: Rows, epochs_B: NDArray[np.int64], pieces: Pieces, config: MaskingConfig, seed: int) -> Masked:
    keys_B = row_keys(seed, config, epochs_B, rows.names_B)
    return mask_rows(rows.ids_BL, rows.lengths_B, keys_B, pieces, config)


def _as_batch(rows: Rows, masked: Masked) -> Batch:
    batch = Batch(*map(torch.from_numpy, masked))
    if rows.types_BL is None or rows.is_random_B is None:
        return batch
    attention_BL = (np.arange(rows.ids_BL.shape[1]) < rows.lengths_B[:, None]).astype(np.int64)
    return Batch(*batch[:3], *map(torch.from_numpy, (rows.types_BL, attention_BL, rows.is_random_B)))
