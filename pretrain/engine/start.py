"""What the loop asks of the thing that trains: gradients of a step, one update, and its state for a checkpoint.

There are four: torch alone for one process (``plain``) and for many (``ddp``, ``fsdp``), and DeepSpeed (``zero``).
All mean the same. Weights are float32; gradients are added up in float32, over micro-batches and processes; bf16 is a
matter of matrix products alone. A step whose gradient norm is not finite moves nothing, and the next line of the log
names it. State is given and taken by the names of the Hugging Face model, so a checkpoint of one goes on under
another, at any number of processes.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from corpus.documents.errors import BadInput
from pretrain.config import PretrainConfig
from pretrain.engine.memory import keep_freed_memory
from pretrain.engine.optimizer import Slice
from pretrain.engine.parallel import DdpEngine, FsdpEngine, joined_alone
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
        """Move the weights once, after the last micro-batch of a step; returns the norm of the gradient.

        Where the norm is not finite, weights and moments stay as they are.
        """

    def averaged(self) -> AbstractContextManager[None]:
        """Let the module have the weights that become the model: their average over the steps, where one is kept."""

    def state(self, *, keep: bool) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Weights by name and moments by "moment/name", float32 on the CPU; every process must call it.

        The weights are those that become the model; where an average does, what is trained is among the moments.
        The tensors may be those that are trained: write or copy them before the next update.

        Without ``keep`` it returns nothing: for processes that only help to gather.
        """

    def slices(self) -> Iterator[Slice]:
        """The same state, of which each process gives what it holds; those of all processes are the whole of it.

        Nothing is gathered. As above, the values may be those that are trained, and on the device.
        """

    def restore(self, weights: Mapping[str, Tensor], moments: Mapping[str, Tensor], step: int) -> None:
        """Go on from a state; the module was built with these weights before the engine was started."""

    def scaling(self) -> dict[str, float]:
        """What loss scaling must remember; empty but for fp16."""

    def restore_scaling(self, found: Mapping[str, float]) -> None: ...


ENGINES: dict[str, Callable[[PretrainConfig, PretrainingModule, World], Engine]] = {
    "plain": PlainEngine, "ddp": DdpEngine, "fsdp": FsdpEngine, "deepspeed": ZeroEngine,
}  # fmt: skip
MOST_OF_DDP = 400_000_000  # parameters; 6 GiB of weights, gradients and moments, more is worth sharding


def start_engine(config: PretrainConfig, module: PretrainingModule, world: World) -> Engine:
    """Wrap the module for training; BadInput where ``compile`` has no compiler, or goes with nothing here."""
    name = choose_engine(config, world, sum(p.numel() for p in module.parameters()))
    if world.device.type == "cpu":
        keep_freed_memory()
    if config.engine.precision == "bf16":
        _use_autocast(module, world.device)
    if config.engine.compile is True:  # "auto" is settled before (pretrain.engine.machine)
        _refuse_compiling_in_vain(name, config, world)
        module.compile(dynamic=False)
    return ENGINES[name](config, module, world)


def ready_for_engine(config: PretrainConfig, world: World) -> AbstractContextManager[None]:
    """What must stand around an engine from its start to its end; ``config`` names the engine, as all below do."""
    if config.engine.name == "deepspeed":
        return joined_deepspeed(world)
    return nullcontext() if config.engine.name == "plain" else joined_alone(world)


def choose_engine(config: PretrainConfig, world: World, parameters: int) -> str:
    """The name of the engine; BadInput where the one asked for cannot do it."""
    name: str = config.engine.name
    precision, optimizer = config.engine.precision, config.optimizer
    if name == "plain" and world.size > 1:
        raise BadInput(
            f"pretrain.engine.name plain is for one process, here are {world.size}; choose auto, ddp, fsdp or deepspeed"
        )
    if precision == "fp16" and world.device.type == "cpu":
        raise BadInput("pretrain.engine.precision fp16 needs a GPU; choose bf16 or fp32")
    if name == "auto":
        is_large = world.size > 1 and parameters > MOST_OF_DDP and optimizer.name == "adamw" and not optimizer.ema
        small = "plain" if world.size == 1 else "ddp"
        name = "deepspeed" if precision == "fp16" or config.engine.offload or is_large else small
    if optimizer.name == "muon" and name in ("fsdp", "deepspeed"):
        raise BadInput(f"pretrain.optimizer.name muon needs whole matrices, which {name} cuts; choose engine.name ddp")
    if optimizer.ema and name == "deepspeed":
        raise BadInput("pretrain.optimizer.ema does not go with deepspeed; choose pretrain.engine.name ddp or fsdp")
    return name


def cuts_state(config: PretrainConfig, world: World) -> bool:
    """Whether an engine leaves each process a part of weights or moments only; ``config`` names the engine."""
    is_zero = config.engine.name == "deepspeed" and config.engine.zero_stage > 0
    return world.size > 1 and (is_zero or config.engine.name == "fsdp")


def describe_engine(config: PretrainConfig, world: World) -> dict[str, Any]:
    settings: dict[str, Any] = {"engine": config.engine.name, "torch": torch.__version__, "processes": world.size}
    return settings | (zero_settings(config, world.size) if settings["engine"] == "deepspeed" else {})


def _use_autocast(module: nn.Module, device: torch.device) -> None:
    """Let matrix products run in bf16. Inside ``forward``, because DeepSpeed turns off what stands around it."""
    forward = module.forward

    def in_bf16(*fields: Tensor | None) -> Any:
        with torch.autocast(device.type, torch.bfloat16):
            return forward(*fields)

    module.forward = in_bf16


def _refuse_compiling_in_vain(name: str, config: PretrainConfig, world: World) -> None:
    if name == "fsdp" or (name == "deepspeed" and config.engine.zero_stage == 3):
        raise BadInput(
            "pretrain.engine.compile does not go with fsdp or ZeRO stage 3; choose ddp, or pretrain.engine.zero_stage 1"
        )
    if world.device.type == "cpu" and not (shutil.which("g++") or shutil.which("clang++")):
        raise BadInput(
            "pretrain.engine.compile needs a C++ compiler (g++) on this machine; install one or leave it off"
        )
