"""What the loop asks of the thing that trains: gradients of a step, one update, and its state for a checkpoint.

There are two: torch alone for one process (``plain``), DeepSpeed for many and for fp16 (``zero``).
Both hold float32 weights beside a model in the chosen precision and give and take them by the names of the Hugging
Face model, so a checkpoint of one goes on under the other, at any number of processes.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from corpus.documents.errors import BadInput
from pretrain.config import PretrainConfig
from pretrain.engine.plain import PlainEngine
from pretrain.engine.world import World
from pretrain.engine.zero import ZeroEngine, joined_deepspeed, zero_settings
from pretrain.model.module import PretrainingModule, Sums


class Engine(Protocol):
    module: nn.Module

    def __call__(self, *fields: Tensor | None) -> Sums:
        """Sums over one micro-batch."""

    def backward(self, loss: Tensor) -> None:
        """Add the gradient of ``loss``; those of a step's micro-batches and of all processes are summed."""

    def update(self, rate: float) -> Tensor | float | None:
        """Move the weights once, behind the last micro-batch of a step; returns the norm of the gradient."""

    def state(self, *, keep: bool) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Weights by name and moments by "moment/name", float32 on the CPU; every process must call it.

        Without ``keep`` it returns nothing: for processes that only help to gather.
        """

    def restore(self, weights: Mapping[str, Tensor], moments: Mapping[str, Tensor], step: int) -> None:
        """Go on from a state; the module was built with these weights before the engine was started."""

    def scaling(self) -> dict[str, float]:
        """What loss scaling must remember; empty but for fp16."""

    def restore_scaling(self, found: Mapping[str, float]) -> None: ...


def start_engine(config: PretrainConfig, module: PretrainingModule, world: World) -> Engine:
    """Wrap the module for training; BadInput where ``compile`` has no compiler, or goes with nothing here."""
    if config.engine.compile:
        _refuse_compiling_in_vain(config, world)
        module.compile(dynamic=False)
    if choose_engine(config, world) == "plain":
        return PlainEngine(config, module, world.device)
    return ZeroEngine(config, module, world)


def ready_for_engine(config: PretrainConfig, world: World) -> AbstractContextManager[None]:
    """What must stand around an engine from its start to its end."""
    return nullcontext() if choose_engine(config, world) == "plain" else joined_deepspeed(world)


def choose_engine(config: PretrainConfig, world: World) -> str:
    """The name of the engine; BadInput where the one asked for cannot do it."""
    if config.engine.name == "plain" and world.size > 1:
        raise BadInput(
            f"pretrain.engine.name plain is for one process, here are {world.size}; choose auto or deepspeed"
        )
    if config.engine.precision == "fp16" and world.device.type == "cpu":
        raise BadInput("pretrain.engine.precision fp16 needs a GPU; choose bf16 or fp32")
    if config.engine.name != "auto":
        return config.engine.name
    return "plain" if world.size == 1 and config.engine.precision != "fp16" else "deepspeed"


def describe_engine(config: PretrainConfig, world: World) -> dict[str, Any]:
    settings: dict[str, Any] = {"engine": choose_engine(config, world), "torch": torch.__version__}
    return settings | (zero_settings(config, world.size) if settings["engine"] == "deepspeed" else {})


def _refuse_compiling_in_vain(config: PretrainConfig, world: World) -> None:
    if config.engine.zero_stage == 3 and choose_engine(config, world) == "deepspeed":
        raise BadInput(
            "pretrain.engine.compile does not go with ZeRO stage 3; choose pretrain.engine.zero_stage 1 or 2"
        )
    if world.device.type == "cpu" and not (shutil.which("g++") or shutil.which("clang++")):
        raise BadInput(
            "pretrain.engine.compile needs a C++ compiler (g++) on this machine; install one or leave it off"
        )
