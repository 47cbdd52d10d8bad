"""Training with torch alone: in one process, or in many with a copy of the model in each (DDP).

In bf16, only matrix products are bf16 (torch autocast), so the error of the gradient against float64 is a fifth of that
of a pure bf16 model (docs/pretrain.md); fp16 is the same with a scaled loss. DDP sums the float32 gradients of all
processes once per step, with the last micro-batch, and needs 16 bytes per parameter on every device.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any
from weakref import WeakSet

import torch
import torch._dynamo  # before a process group exists: its import would keep the group alive after the end
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from pretrain.config import PretrainConfig
from pretrain.engine.optimizer import MOMENTS, SCALE, UPDATES, adamw, fit_micro_batch, on_host, skip_unless_finite
from pretrain.engine.world import World
from pretrain.model.loss import PretrainingModule, Sums
from pretrain.model.sizes import SHORT_ROW

# Models whose reducers must be freed before their process group. A reducer that is freed later ends the threads of the
# group while it holds the GIL, and waits forever for a thread that needs the GIL.
_WITH_REDUCER: WeakSet[DistributedDataParallel] = WeakSet()


class PlainEngine:
    """One process; see ``pretrain.engine.start.Engine``. The module is moved to the device."""

    def __init__(self, config: PretrainConfig, module: PretrainingModule, world: World) -> None:
        self.module: nn.Module = module.to(world.device)
        self._weights = dict(module.network.named_parameters())
        self._optimizer = adamw(config, list(self._weights.values()))
        self._scaler = torch.amp.GradScaler(world.device.type, enabled=config.engine.precision == "fp16")
        self._clip = config.optimizer.clip
        self._is_compiled = config.engine.compile is True  # compiled code has its own attention
        self._reset_moments(0.0)

    def __call__(self, *fields: Any) -> Sums:
        with self._attention(fields[0]):
            return self._forward(*fields)

    def begin_step(self, micro_batches: int) -> None:
        """Gradients are summed, whatever their number."""

    def backward(self, loss: Tensor) -> None:
        self._scaler.scale(loss).backward()

    def update(self, rate: float) -> Tensor:
        self._scaler.unscale_(self._optimizer)
        weights = [p for p in self._weights.values() if p.grad is not None]
        norm = get_total_norm([p.grad for p in weights if p.grad is not None])
        if self._clip:
            clip_grads_with_norm_(weights, self._clip, norm)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        skip_unless_finite(self._optimizer, norm)
        self._optimizer.step()  # not by the scaler, which would wait for the norm
        self._scaler.update()
        for p in self._weights.values():
            p.grad = None
        return norm

    def state(self, *, keep: bool) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        if not keep:
            return {}, {}
        weights = {name: on_host(p.detach()) for name, p in self._weights.items()}
        moments = {
            f"{key}/{name}": on_host(self._optimizer.state[p][key])
            for name, p in self._weights.items() for key in MOMENTS
        }  # fmt: skip
        return weights, moments | {UPDATES: on_host(next(iter(self._optimizer.state.values()))["step"])}

    @torch.no_grad()
    def restore(self, weights: Mapping[str, Tensor], moments: Mapping[str, Tensor], step: int) -> None:
        self._reset_moments(float(moments.get(UPDATES, step)))
        for name, p in self._weights.items():
            p.copy_(weights[name])
            for key in MOMENTS:
                if f"{key}/{name}" in moments:  # absent if the checkpoint was written with another optimizer
                    self._optimizer.state[p][key].copy_(moments[f"{key}/{name}"])

    def scaling(self) -> dict[str, float]:
        state = self._scaler.state_dict()
        return {SCALE: state["scale"], "growth_tracker": state["_growth_tracker"]} if state else {}

    def restore_scaling(self, scaling: Mapping[str, float]) -> None:
        if SCALE in scaling:
            tracker = int(scaling.get("growth_tracker", 0))
            self._scaler.load_state_dict(
                self._scaler.state_dict() | {"scale": scaling[SCALE], "_growth_tracker": tracker}
            )

    def _forward(self, *fields: Any) -> Sums:
        sums: Sums = self.module(*fields)
        return sums

    def _reset_moments(self, updates: float) -> None:
        """Set all moments to zero, after ``updates`` updates."""
        for p in self._weights.values():
            self._optimizer.state[p] = {"step": torch.tensor(updates, device=p.device)}
            self._optimizer.state[p] |= {key: torch.zeros_like(p) for key in MOMENTS}

    def _attention(self, ids_BL: Tensor | None) -> AbstractContextManager[None]:
        """Plain matrix products for short rows on CPUs: 3 to 4 % faster per step than torch's blockwise attention."""
        is_short = ids_BL is not None and ids_BL.shape[1] <= SHORT_ROW and ids_BL.device.type == "cpu"
        return sdpa_kernel(SDPBackend.MATH) if is_short and not self._is_compiled else nullcontext()


class DdpEngine(PlainEngine):
    """A copy of the model in each process; see ``pretrain.engine.start.Engine``."""

    def __init__(self, config: PretrainConfig, module: PretrainingModule, world: World) -> None:
        super().__init__(config, module, world)
        self._ddp = DistributedDataParallel(module, broadcast_buffers=False, gradient_as_bucket_view=True)
        _WITH_REDUCER.add(self._ddp)
        self._processes = world.size
        self._micro_batches = config.global_batch // world.size // fit_micro_batch(config, world.size)
        self._started = 0  # micro-batches so far

    def begin_step(self, micro_batches: int) -> None:
        self._micro_batches, self._started = micro_batches, 0

    def backward(self, loss: Tensor) -> None:
        super().backward(loss * self._processes)  # DDP averages over the processes

    def _forward(self, *fields: Any) -> Sums:
        if not torch.is_grad_enabled():
            return super()._forward(*fields)
        self._started += 1
        is_last = self._started % self._micro_batches == 0
        with nullcontext() if is_last else self._ddp.no_sync():
            sums: Sums = self._ddp(*fields)
        return sums


@contextmanager
def process_group(world: World) -> Iterator[None]:
    """A process group for DDP; a single process needs one too, but no port. No DDP engine works after it."""
    if not dist.is_initialized():
        backend = dist.get_default_backend_for_device(world.device)
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    try:
        yield
    finally:
        while _WITH_REDUCER:
            ddp = _WITH_REDUCER.pop()
            del ddp.reducer, ddp.logger, ddp.process_group
        if dist.is_initialized():
            dist.destroy_process_group()
