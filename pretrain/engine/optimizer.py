"""AdamW, and how a step is cut into micro-batches: the same for every engine."""

from __future__ import annotations

import math

import torch
from torch import nn

from corpus.documents.errors import BadInput
from pretrain.config import PretrainConfig

MOMENTS = ("exp_avg", "exp_avg_sq")  # Adam's averages, by the names of torch


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
    return max(size for size in range(1, min(config.engine.micro_batch, share) + 1) if share % size == 0)
