"""What the loop asks of the thing that trains: gradients of a step, one update, and its state for a checkpoint.

There are two: torch alone for one process (``pretrain.plain``), DeepSpeed for many and for fp16 (``pretrain.zero``).
Both hold float32 weights beside a model in the chosen precision and give and take them by the names of the Hugging
Face model, so a checkpoint of one goes on under the other, at any number of processes.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from corpus.documents.errors import BadInput
from pretrain.batches import Batch
from pretrain.config import PretrainConfig
from pretrain.draws import derive_key
from pretrain.model import PretrainingModule, Sums
from pretrain.world import World

MOMENTS = ("exp_avg", "exp_avg_sq")  # Adam's averages, by the names of torch


class Engine(Protocol):
    """One process's part of the training."""

    module: nn.Module

    def __call__(self, *fields: Tensor | None) -> Sums:
        """Sums over one micro-batch."""

    def backward(self, loss: Tensor) -> None:
        """Add the gradient of ``loss``; those of a step's micro-batches and of all processes are summed."""

    def update(self, rate: float) -> Tensor | float | None:
        """Move the weights once, behind the last micro-batch of a step; returns the norm of the gradient."""

    def state(self, *, keep: bool) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Weights by name and moments by "moment/name", float32 on the CPU; every process must call it.

        Args:
            keep: False returns nothing: for processes that only help to gather.
        """

    def restore(self, weights: Mapping[str, Tensor], moments: Mapping[str, Tensor], step: int) -> None:
        """Go on from a state; the module was built with these weights before the engine was started."""

    def scaling(self) -> dict[str, float]:
        """What loss scaling must remember; empty but for fp16."""

    def restore_scaling(self, found: Mapping[str, float]) -> None:
        """Go on from ``scaling``."""


def start_engine(config: PretrainConfig, module: PretrainingModule, world: World) -> Engine:
    """Wrap the module for training.

    Raises:
        BadInput: the setting needs another engine, or a compiler that is not there.
    """
    if config.activation_checkpointing:
        module.network.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if config.compile:
        _refuse_compiling_in_vain(config, world)
        module.compile(dynamic=False)
    if choose_engine(config, world) == "plain":
        from pretrain.plain import PlainEngine

        return PlainEngine(config, module, world.device)
    from pretrain.zero import ZeroEngine

    return ZeroEngine(config, module, world)


@contextmanager
def ready_for_engine(config: PretrainConfig, world: World) -> Iterator[None]:
    """What must stand around an engine from its start to its end."""
    if choose_engine(config, world) == "plain":
        yield
        return
    from pretrain.zero import joined_deepspeed  # not before the world is joined: it already looks for devices

    with joined_deepspeed(world):
        yield


def choose_engine(config: PretrainConfig, world: World) -> str:
    """ "plain" or "deepspeed".

    Raises:
        BadInput: torch alone was asked for, but there are many processes; or fp16 without a GPU.
    """
    if config.engine == "plain" and world.size > 1:
        raise BadInput(f"pretrain.engine plain is for one process, here are {world.size}; choose auto or deepspeed")
    if config.precision == "fp16" and world.device.type == "cpu":
        raise BadInput("pretrain.precision fp16 needs a GPU; choose bf16 or fp32")
    if config.engine != "auto":
        return config.engine
    return "plain" if world.size == 1 and config.precision != "fp16" else "deepspeed"


def optimizer_of(config: PretrainConfig, parameters: list[nn.Parameter]) -> torch.optim.AdamW:
    """AdamW without decay on biases and LayerNorm, as BERT and RoBERTa do.

    DeepSpeed gets it too: its own Adam would be compiled at first use, which takes minutes.
    """
    return torch.optim.AdamW(
        [
            {"params": [p for p in parameters if p.ndim > 1], "weight_decay": config.weight_decay},
            {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
        ],
        lr=config.lr,
        betas=config.betas,
        eps=config.epsilon,
        fused=True,
    )


def fit_micro_batch(config: PretrainConfig, ranks: int) -> int:
    """Sequences per micro-batch: the largest divisor of a process's share that is at most ``micro_batch``.

    Raises:
        BadInput: the processes cannot share the global batch equally.
    """
    if config.global_batch % ranks:
        nearest = max(ranks, round(config.global_batch / ranks) * ranks)
        raise BadInput(
            f"pretrain.global_batch {config.global_batch} is not divisible by {ranks} processes; "
            f"the nearest value that is: {nearest}"
        )
    share = config.global_batch // ranks
    return max(size for size in range(1, min(config.micro_batch, share) + 1) if share % size == 0)


def learning_rate(config: PretrainConfig, step: int) -> float:
    """Linear rise over the warm-up, then linear fall to zero behind the last step; ``step`` counts from 1."""
    warmup = round(config.steps * config.warmup_share)
    if step <= warmup:
        return config.lr * step / warmup
    return config.lr * (config.steps + 1 - step) / (config.steps - warmup)


def seed_dropout(config: PretrainConfig, step: int, world: World) -> None:
    """Make the dropout of a step depend on (seed, step, rank) only, so that a resumed run repeats it."""
    torch.manual_seed(int(derive_key(config.seed, "dropout", step, world.rank)))


def run_forward(engine: Engine, batch: Batch, world: World) -> Sums:
    """Sums of one micro-batch on the engine's device."""
    return engine(*batch.to(world.device))


def describe_engine(config: PretrainConfig, world: World) -> dict[str, Any]:
    """The engine's settings, for the record."""
    name = choose_engine(config, world)
    settings: dict[str, Any] = {"engine": name, "torch": torch.__version__}
    if name == "deepspeed":
        from pretrain.zero import zero_settings

        settings |= zero_settings(config, world.size)
    return settings


def _refuse_compiling_in_vain(config: PretrainConfig, world: World) -> None:
    if config.zero_stage == 3 and choose_engine(config, world) == "deepspeed":
        raise BadInput("pretrain.compile does not go with ZeRO stage 3; choose pretrain.zero_stage 1 or 2")
    if world.device.type == "cpu" and not (shutil.which("g++") or shutil.which("clang++")):
        raise BadInput("pretrain.compile needs a C++ compiler (g++) on this machine; install one or leave it off")
