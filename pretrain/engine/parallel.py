"""Training in many processes with torch alone: whole copies of the model (DDP), or each a part of it (FSDP2).

Both add the float32 gradients of all processes up once a step, with the last micro-batch. DDP needs 16 bytes a
parameter on every device and sends least; FSDP cuts them into as many parts as there are processes, and gathers
the weights of a layer each time it is computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.nn.parallel import DistributedDataParallel

from pretrain.config import PretrainConfig
from pretrain.engine.optimizer import fit_micro_batch, total_norm
from pretrain.engine.plain import PlainEngine
from pretrain.engine.world import World
from pretrain.model.module import PretrainingModule, Sums


@contextmanager
def joined_alone(world: World) -> Iterator[None]:
    """A world of one process needs a group too, but no port."""
    if not dist.is_initialized():
        backend = dist.get_default_backend_for_device(world.device)
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    try:
        yield
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


class DdpEngine(PlainEngine):
    """A whole copy of the model in each process; see ``pretrain.engine.start.Engine``."""

    def __init__(self, config: PretrainConfig, module: PretrainingModule, world: World) -> None:
        super().__init__(config, module, world)
        self._ddp = DistributedDataParallel(module, broadcast_buffers=False, gradient_as_bucket_view=True)
        self._processes = world.size
        self._turns = _Turns(config, world)

    def backward(self, loss: Tensor) -> None:
        super().backward(loss * self._processes)  # DDP averages over the processes

    def _forward(self, *fields: Tensor | None) -> Sums:
        if not torch.is_grad_enabled():
            return super()._forward(*fields)
        with nullcontext() if self._turns.is_last() else self._ddp.no_sync():
            sums: Sums = self._ddp(*fields)
        return sums


class FsdpEngine(PlainEngine):
    """A part of each parameter in each process; see ``pretrain.engine.start.Engine``.

    The parts are updated as plain tensors: AdamW knows no others, and torch's wrapping costs time in every operation.
    """

    def __init__(self, config: PretrainConfig, module: PretrainingModule, world: World) -> None:
        mesh = init_device_mesh(world.device.type, (world.size,))
        layers = [layer for part in module.modules() if isinstance(part, nn.ModuleList) for layer in part]
        for part in (*layers, module):  # what is no layer forms one group
            # the outermost too: measuring must leave no whole weights behind, which a later update would not reach
            sharded: Any = fully_shard(part, mesh=mesh, reshard_after_forward=True)
            sharded.set_force_sum_reduction_for_comms(True)  # gloo cannot average
            sharded.set_gradient_divide_factor(1.0)
        self._sharded: dict[str, Any] = dict(module.network.named_parameters())  # DTensors
        super().__init__(config, module, world)
        self._root: Any = module
        self._turns = _Turns(config, world)

    def update(self, rate: float) -> Tensor:
        for name, part in self._weights.items():
            whole = self._sharded[name].grad
            part.grad = None if whole is None else whole.to_local()
            self._sharded[name].grad = None
        return super().update(rate)

    def _forward(self, *fields: Tensor | None) -> Sums:
        if torch.is_grad_enabled():
            self._root.set_requires_gradient_sync(self._turns.is_last())
        return super()._forward(*fields)

    def _norm(self, gradients: list[Tensor]) -> Tensor:
        return total_norm(gradients)

    def _part(self, p: nn.Parameter) -> nn.Parameter:
        assert isinstance(p, DTensor)
        return nn.Parameter(p.to_local().detach())

    def _whole(self, name: str, part: Tensor) -> Tensor:
        like = self._sharded[name]
        whole = DTensor.from_local(
            part, like.device_mesh, like.placements, run_check=False, shape=like.shape, stride=like.stride()
        )
        return whole.full_tensor()

    def _slice(self, name: str, part: Tensor) -> tuple[int, Tensor]:
        rows, *rest = self._shapes[name]
        first = min(-(-rows // self._ranks) * self._rank, rows)  # rows are dealt out as by torch.chunk
        return first * math.prod(rest), part.detach().flatten()

    def _own(self, name: str, whole: Tensor) -> Tensor:
        like = self._sharded[name]
        placed = distribute_tensor(whole.to(like.device), like.device_mesh, like.placements, src_data_rank=None)
        return placed.to_local()


class _Turns:
    """Counts the micro-batches of a step."""

    def __init__(self, config: PretrainConfig, world: World) -> None:
        self._count = config.global_batch // world.size // fit_micro_batch(config, world.size)
        self._begun = 0

    def is_last(self) -> bool:
        """Whether the micro-batch that begins is the step's last."""
        self._begun += 1
        return self._begun % self._count == 0
