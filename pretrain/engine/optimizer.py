"""AdamW, the micro-batches of a step, and slices of its state: the same for every engine."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from corpus.documents.errors import BadInput
from pretrain.batching.batches import largest_divisor
from pretrain.config import PretrainConfig

MOMENTS = ("exp_avg", "exp_avg_sq")  # Adam's moments, by the names of torch
EPSILON = 1e-6  # RoBERTa, Table 9
UPDATES = "updates"  # key of a checkpoint: how many steps changed the weights
SCALE = "cur_scale"  # key of a checkpoint: the factor of the loss in fp16
MODEL = "model"  # kind of the slices that become the model


class Slice(NamedTuple):
    """One process's part of a tensor: the one-dimensional ``values`` from index ``start`` of the flattened tensor.

    ``key`` is "kind/name of the parameter", where the kind is ``MODEL`` for weights or one of ``MOMENTS``; or it is
    ``UPDATES``. ``shape`` is that of the full tensor.
    """

    key: str
    shape: tuple[int, ...]
    start: int
    values: Tensor


def adamw(config: PretrainConfig, parameters: list[nn.Parameter]) -> torch.optim.AdamW:
    """AdamW without weight decay on biases and LayerNorm, as in BERT and RoBERTa; also for DeepSpeed."""
    return torch.optim.AdamW(
        [
            {"params": [p for p in parameters if p.ndim > 1], "weight_decay": config.optimizer.weight_decay},
            {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
        ],
        lr=config.optimizer.lr,
        betas=config.optimizer.betas,
        eps=EPSILON,
        fused=True,
    )


def on_host(tensor: Tensor) -> Tensor:
    """A float32 copy in the memory of the CPU."""
    return tensor.to("cpu", torch.float32, copy=True)


def skip_unless_finite(optimizer: torch.optim.Optimizer, norm: Tensor) -> None:
    """Make the next step of a fused AdamW change nothing if the gradient norm is not finite.

    The kernel reads the flag on the device, so the host does not wait. It is the flag that torch's GradScaler sets.
    """
    optimizer.found_inf = norm.isfinite().logical_not().float()  # type: ignore[attr-defined]


def fit_micro_batch(config: PretrainConfig, ranks: int) -> int:
    """Sequences per micro-batch: the largest divisor of a process's share of the batch up to ``micro_batch``."""
    if config.global_batch % ranks:
        nearest = max(ranks, round(config.global_batch / ranks) * ranks)
        raise BadInput(
            f"pretrain.global_batch {config.global_batch} is not divisible by {ranks} processes; "
            f"the nearest value that is: {nearest}"
        )
    return largest_divisor(config.global_batch // ranks, config.engine.max_sequences)
