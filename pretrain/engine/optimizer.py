"""AdamW, how a step is cut into micro-batches, and a state into slices: the same for every engine."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.utils import get_total_norm

from corpus.documents.errors import BadInput
from pretrain.config import PretrainConfig

MOMENTS = ("exp_avg", "exp_avg_sq")  # Adam's averages, by the names of torch
UPDATES = "updates"  # among the moments of a checkpoint: how many steps moved the weights
MODEL = "model"  # kind of the slices that become the model


class Slice(NamedTuple):
    """What one process holds of a tensor: ``values`` (one dimension) from place ``start`` of it, row by row.

    ``key`` is "kind/name of the parameter", the kind being ``MODEL`` for the weights that become the model, or
    ``UPDATES``; ``shape`` is that of the whole tensor.
    """

    key: str
    shape: tuple[int, ...]
    start: int
    values: Tensor


def even_slice(whole: Tensor, rank: int, ranks: int) -> tuple[int, Tensor]:
    """Start and values of a process's share of a tensor that all have whole."""
    flat = whole.detach().flatten()
    start, end = (len(flat) * part // ranks for part in (rank, rank + 1))
    return start, flat[start:end]


def adamw(config: PretrainConfig, parameters: list[nn.Parameter]) -> torch.optim.AdamW:
    """AdamW without decay on biases and LayerNorm, as BERT and RoBERTa do.

    DeepSpeed gets it too: its own Adam would be compiled at first use, which takes minutes.
    """
    return torch.optim.AdamW(
        [
            {"params": [p for p in parameters if p.ndim > 1], "weight_decay": config.optimizer.weight_decay},
            {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
        ],
        lr=config.optimizer.lr,
        betas=config.optimizer.betas,
        eps=config.optimizer.epsilon,
        fused=True,
    )


def total_norm(gradients: list[Tensor]) -> Tensor:
    """The norm of what lies cut over all processes."""
    squared = get_total_norm(gradients).square()
    dist.all_reduce(squared)
    return squared.sqrt()


def leave_out_unless_finite(optimizer: torch.optim.Optimizer, norm: Tensor) -> None:
    """Let the next step of a fused AdamW change nothing where the gradient's norm is not finite.

    The kernel reads it on the device, so nobody waits; it is what torch's GradScaler sets.
    """
    optimizer.found_inf = norm.isfinite().logical_not().float()  # type: ignore[attr-defined]


def fit_micro_batch(config: PretrainConfig, ranks: int) -> int:
    """Sequences per micro-batch: the largest divisor of a process's share that is at most ``micro_batch``.

    Of its causal rows and of its masked rows alike, where a step has both.
    """
    if config.global_batch % ranks:
        nearest = max(ranks, round(config.global_batch / ranks) * ranks)
        raise BadInput(
            f"pretrain.global_batch {config.global_batch} is not divisible by {ranks} processes; "
            f"the nearest value that is: {nearest}"
        )
    both = math.gcd(config.causal_rows, config.global_batch - config.causal_rows)
    if both % ranks:
        raise BadInput(
            f"{config.causal_rows} rows of pretrain.global_batch {config.global_batch} are causal, and {ranks} "
            "processes cannot share both kinds evenly; change pretrain.model.causal_share or global_batch"
        )
    share = both // ranks
    return max(size for size in range(1, min(config.engine.most_sequences, share) + 1) if share % size == 0)
