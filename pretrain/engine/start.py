"""The engines: what the training loop needs of them, which one is used, and how it starts.

All engines compute the same: weights and sums of gradients are float32, and bf16 is for matrix products only. A step
whose gradient norm is not finite changes nothing. State is saved by the parameter names of the Hugging Face model, so a
checkpoint of one engine resumes with another, with any number of processes.
"""

from __future__ import annotations

import logging
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
from pretrain.engine.torch_engine import DdpEngine, PlainEngine, process_group
from pretrain.engine.world import World
from pretrain.engine.zero import ZeroEngine, deepspeed_group, zero_settings
from pretrain.model.loss import PretrainingModule, Sums
from pretrain.schedule import phases

log = logging.getLogger(__name__)
_DYNAMO_LOG = logging.getLogger("torch._dynamo.convert_frame")


class Engine(Protocol):
    module: nn.Module

    def __call__(self, *fields: Any) -> Sums:
        """Sums over one micro-batch."""

    def begin_step(self, micro_batches: int) -> None:
        """Prepare for a step of that many micro-batches in each process; phases may differ."""

    def backward(self, loss: Tensor) -> None:
        """Add the gradient of ``loss``; gradients of a step's micro-batches and of all processes are summed."""

    def update(self, rate: float) -> Tensor | float | None:
        """Update the weights once, after the last micro-batch of a step; returns the norm of the gradient.

        If the norm is not finite, weights and moments stay as they are.
        """

    def state(self, *, keep: bool) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Copies of weights by name and of moments by "moment/name", float32 on the CPU; every process must call it.

        Without ``keep`` it returns nothing and only helps to gather.
        """

    def restore(self, weights: Mapping[str, Tensor], moments: Mapping[str, Tensor], step: int) -> None:
        """Resume from a state; the module was built with these weights before the engine was started."""

    def scaling(self) -> dict[str, float]:
        """State of the loss scaling; empty except in fp16."""

    def restore_scaling(self, scaling: Mapping[str, float]) -> None: ...


class ShardedEngine(Engine, Protocol):
    """An engine of several processes that each hold a part of the state (``is_sharded``)."""

    def slices(self) -> Iterator[Slice]:
        """This process's part of the state, on the device; copy it before the next update."""


ENGINES: dict[str, Callable[[PretrainConfig, PretrainingModule, World], Engine]] = {
    "plain": PlainEngine, "ddp": DdpEngine, "deepspeed": ZeroEngine,
}  # fmt: skip
MAX_PARAMETERS_OF_DDP = 400_000_000  # 6 GiB of weights, gradients and moments; above that, sharding pays


def start_engine(config: PretrainConfig, module: PretrainingModule, world: World) -> Engine:
    """Wrap the module for training; BadInput if ``compile`` finds no compiler or does not work with the engine."""
    name = choose_engine(config, world, sum(p.numel() for p in module.parameters()))
    if world.device.type == "cpu":
        keep_freed_memory()
    is_cast = name == "deepspeed" and config.engine.precision == "fp16"  # by DeepSpeed, all of the module
    if config.engine.precision != "fp32" and not is_cast:
        dtype = torch.bfloat16 if config.engine.precision == "bf16" else torch.float16
        _use_autocast(module, world.device, dtype)
    if config.engine.compile is True:  # "auto" has been resolved before (pretrain.engine.auto_settings)
        _require_compiler(name, config, world)
        # a graph for each phase, training and measuring, and for the sizes of ``compact_borders``
        shapes = 8 if config.rows.packing == "documents" or config.model.nsp else 1
        torch._dynamo.config.recompile_limit = max(8, shapes * (2 * len(phases(config)) + 2))
        _DYNAMO_LOG.setLevel(logging.WARNING)  # the console hides warnings of torch
        _DYNAMO_LOG.addFilter(_report_eager_code)
        if name != "deepspeed":
            module.compile(dynamic=False)  # for DDP, torch cuts the graph at the buckets of the all-reduce
    return ENGINES[name](config, module, world)


def _report_eager_code(record: logging.LogRecord) -> bool:
    """Log once that torch gave up compiling; a filter of dynamo's warnings, the only place that says so."""
    if "recompile_limit" not in record.getMessage():
        return True
    log.warning("the rest of the run is eager and slower: torch stopped compiling after too many graph shapes")
    _DYNAMO_LOG.setLevel(logging.ERROR)
    return False


def is_partly_eager() -> bool:
    """Whether torch gave up compiling in this run; ``_report_eager_code`` has set the level."""
    return _DYNAMO_LOG.level == logging.ERROR


def ready_for_engine(config: PretrainConfig, world: World) -> AbstractContextManager[None]:
    """The process group that an engine needs while it runs; ``config`` names the engine, as in all functions below."""
    if config.engine.name == "deepspeed":
        return deepspeed_group(world)
    return nullcontext() if config.engine.name == "plain" else process_group(world)


def choose_engine(config: PretrainConfig, world: World, parameters: int) -> str:
    """The name of the engine; BadInput if the requested one cannot do it."""
    name: str = config.engine.name
    precision = config.engine.precision
    if name == "plain" and world.size > 1:
        raise BadInput(
            f"pretrain.engine.name plain is for one process, but there are {world.size}; choose auto, ddp or deepspeed"
        )
    if precision == "fp16" and world.device.type == "cpu":
        raise BadInput("pretrain.engine.precision fp16 needs a GPU; choose bf16 or fp32")
    if name == "auto":
        is_large = world.size > 1 and parameters > MAX_PARAMETERS_OF_DDP
        small = "plain" if world.size == 1 else "ddp"
        name = "deepspeed" if is_large else small
    return name


def is_sharded(config: PretrainConfig, world: World) -> bool:
    """Whether each process holds only a part of weights or moments; ``config`` names the engine."""
    return world.size > 1 and config.engine.name == "deepspeed" and config.engine.zero_stage > 0


def describe_engine(config: PretrainConfig, world: World) -> dict[str, Any]:
    settings: dict[str, Any] = {"engine": config.engine.name, "torch": torch.__version__, "processes": world.size}
    return settings | (zero_settings(config, world.size) if settings["engine"] == "deepspeed" else {})


def _use_autocast(module: nn.Module, device: torch.device, dtype: torch.dtype) -> None:
    """Run matrix products in ``dtype``. Inside ``forward``, because DeepSpeed disables an autocast around it."""
    forward = module.forward

    def in_half_precision(*fields: Any) -> Any:
        with torch.autocast(device.type, dtype):
            return forward(*fields)

    module.forward = in_half_precision


def _require_compiler(name: str, config: PretrainConfig, world: World) -> None:
    if name == "deepspeed" and config.engine.zero_stage == 3:
        raise BadInput(
            "pretrain.engine.compile does not work with ZeRO stage 3; choose ddp, or pretrain.engine.zero_stage 1"
        )
    if world.device.type == "cpu" and not (shutil.which("g++") or shutil.which("clang++")):
        raise BadInput(
            "pretrain.engine.compile needs a C++ compiler (g++) on this machine; install one or set it to false"
        )
