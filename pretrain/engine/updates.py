"""How the weights move once a step: AdamW, or Muon for the matrices of the layers, and the average over the steps.

Muon is torch's own (momentum .95, Nesterov). Its update is scaled to the size of one of AdamW's, 0.2 sqrt(longer side)
(Moonlight, arXiv 2502.16982), so one learning rate and one weight decay serve both. Each process makes every n-th
matrix orthogonal, by five Newton-Schulz iterations in the precision of the run, and sends it to the others.
The price of leaving out a bad step without asking the device is a copy of those matrices and their momentum.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from pretrain.config import PretrainConfig
from pretrain.engine.optimizer import MOMENTS, adamw, leave_out_unless_finite
from pretrain.engine.world import World

WEIGHT, AVERAGE, MOMENTUM = "weight", "average", "momentum_buffer"


def layer_matrices(module: nn.Module) -> set[int]:
    """``id`` of the matrices that Muon is made for: those of the layers, no embeddings, no heads."""
    layers = (layer for part in module.modules() if isinstance(part, nn.ModuleList) for layer in part)
    return {id(p) for layer in layers for p in layer.parameters() if p.ndim == 2}


class Updates:
    """The optimizer's state beside the weights of a process; ``matrices``: names of those that Muon moves."""

    def __init__(
        self, config: PretrainConfig, weights: Mapping[str, nn.Parameter], matrices: Collection[str], world: World
    ) -> None:
        self._weights, self._world = weights, world
        self._adamw = adamw(config, [p for name, p in weights.items() if name not in matrices])
        self._momentum = {name: torch.zeros_like(weights[name]) for name in weights if name in matrices}
        self._owners = {name: place % world.size for place, name in enumerate(self._momentum)}
        self._own = [name for name, rank in self._owners.items() if rank == world.rank]
        self._muon = _muon(config, [weights[name] for name in self._own]) if self._own else None
        self._rounds = config.engine.precision != "fp32"
        self._decay, self._steps = config.optimizer.ema, 0
        self._averages = {name: p.detach().clone() for name, p in weights.items()} if self._decay else {}
        self.begin_at(0, 0.0)

    @property
    def shown(self) -> str:
        """Which parts become the model: the average, where there is one."""
        return AVERAGE if self._averages else WEIGHT

    @property
    def made(self) -> Tensor:
        """How many updates moved the weights, on the CPU."""
        return next(iter(self._adamw.state.values()))["step"].cpu()

    def begin_at(self, step: int, made: float) -> None:
        """Go on after a step, ``made`` updates and not as many being left out; the moments are zero."""
        self._steps = step
        for group in self._adamw.param_groups:
            for p in group["params"]:
                self._adamw.state[p] = {"step": torch.tensor(made, device=p.device)}
                self._adamw.state[p] |= {key: torch.zeros_like(p) for key in MOMENTS}
        for name in self._own:
            assert self._muon is not None
            self._muon.state[self._weights[name]] = {MOMENTUM: self._momentum[name]}

    def step(self, rate: float, norm: Tensor) -> None:
        """Move the weights by their gradients, nothing where the norm is not finite; forget the gradients."""
        for optimizer in (self._adamw, self._muon):
            for group in optimizer.param_groups if optimizer else ():
                group["lr"] = rate
        leave_out_unless_finite(self._adamw, norm)
        self._adamw.step()
        if self._momentum:
            self._move_matrices(norm)
        for p in self._weights.values():
            p.grad = None
        self._steps += 1
        if self._averages:
            # as Adam corrects its averages: the weights before the first step count nothing
            share = (1 - self._decay) / (1 - self._decay**self._steps)
            torch._foreach_lerp_(list(self._averages.values()), [p.detach() for p in self._weights.values()], share)

    def parts(self) -> Iterator[tuple[str, str, Tensor]]:
        """All that a checkpoint holds, as (kind, name, tensor); all processes call it together."""
        self._send(self._momentum)
        for name, p in self._weights.items():
            yield WEIGHT, name, p.detach()
            if name in self._averages:
                yield AVERAGE, name, self._averages[name]
            if name in self._momentum:
                yield MOMENTUM, name, self._momentum[name]
            else:
                yield from ((key, name, self._adamw.state[p][key]) for key in MOMENTS)

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Let the model have the averaged weights meanwhile."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    @torch.no_grad()
    def _exchange(self) -> None:
        for name, average in self._averages.items():
            weight = self._weights[name].detach().clone()
            self._weights[name].copy_(average)
            average.copy_(weight)

    @torch.no_grad()
    def _move_matrices(self, norm: Tensor) -> None:
        moved = [tensor for name in self._own for tensor in (self._weights[name], self._momentum[name])]
        before = [tensor.clone() for tensor in moved]
        if self._muon:
            with nullcontext() if self._rounds else _NewtonSchulzInFloat32():
                self._muon.step()
        for tensor, old in zip(moved, before, strict=True):
            tensor.copy_(torch.where(norm.isfinite(), tensor, old))
        self._send(self._weights)

    def _send(self, tensors: Mapping[str, Tensor]) -> None:
        """Each matrix from the process that moves it to all others."""
        if self._world.size > 1:
            sent = [dist.broadcast(tensors[name].detach(), at, async_op=True) for name, at in self._owners.items()]
            for handle in sent:
                handle.wait()


class _NewtonSchulzInFloat32(TorchFunctionMode):
    """torch's Muon iterates in bf16 whatever it is given, which CPUs without bf16 do seven times slower."""

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return args[0].clone() if func is Tensor.bfloat16 else func(*args, **(kwargs or {}))


def _muon(config: PretrainConfig, matrices: list[nn.Parameter]) -> torch.optim.Muon:
    given = config.optimizer
    return torch.optim.Muon(matrices, given.lr, given.weight_decay, adjust_lr_fn="match_rms_adamw")
