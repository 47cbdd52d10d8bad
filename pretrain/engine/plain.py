"""Training in one process with torch alone: for laptops and single GPUs, and nothing to install beside torch.

Weights, gradients and updates are float32. In bf16 the matrix products alone are bf16, by torch's autocast: residual
stream, LayerNorm and the sums over micro-batches stay float32, so the gradient's error against float64 is a fifth of
that of a model in bf16 throughout (docs/pretrain.md). The price is a bf16 copy of each matrix, made in every
micro-batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from pretrain.config import PretrainConfig
from pretrain.engine.optimizer import MODEL, UPDATES, Slice, even_slice
from pretrain.engine.updates import AVERAGE, WEIGHT, Updates, layer_matrices
from pretrain.engine.world import World
from pretrain.model.module import PretrainingModule, Sums

SHORT_ROW = 128  # tokens; at 512 blockwise attention is the faster one


class PlainEngine:
    """One process; see ``pretrain.engine.start.Engine``. The module is moved to the device."""

    def __init__(self, config: PretrainConfig, module: PretrainingModule, world: World) -> None:
        self.module: nn.Module = module.to(world.device)
        named = dict(module.network.named_parameters())
        self._shapes = {name: tuple(p.shape) for name, p in named.items()}  # of the whole
        self._weights = {name: self._part(p) for name, p in named.items()}
        self._rank, self._ranks = world.rank, world.size
        self._clip = config.optimizer.clip
        self._is_compiled = config.engine.compile is True  # brings its own attention
        chosen = layer_matrices(module) if config.optimizer.name == "muon" else set()
        matrices = [name for name, p in named.items() if id(p) in chosen]
        self._updates = Updates(config, self._weights, matrices, world)

    def __call__(self, *fields: Tensor | None) -> Sums:
        with self._attention(fields[0]):
            return self._forward(*fields)

    def backward(self, loss: Tensor) -> None:
        loss.backward()

    def update(self, rate: float) -> Tensor:
        weights = [p for p in self._weights.values() if p.grad is not None]
        norm = self._norm([p.grad for p in weights if p.grad is not None])
        if self._clip:
            clip_grads_with_norm_(weights, self._clip, norm)
        self._updates.step(rate, norm)
        return norm

    def averaged(self) -> AbstractContextManager[None]:
        return self._updates.averaged()

    def state(self, *, keep: bool) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        found: dict[str, Tensor] = {}
        for kind, name, part in self._updates.parts():
            whole = self._whole(name, part)
            if keep:
                found[f"{kind}/{name}"] = whole.cpu()
        if not keep:
            return {}, {}
        weights = {name: found.pop(f"{self._updates.shown}/{name}") for name in self._weights}
        return weights, found | {UPDATES: self._updates.made}

    def slices(self) -> Iterator[Slice]:
        for kind, name, part in self._updates.parts():
            key = f"{MODEL if kind == self._updates.shown else kind}/{name}"
            yield Slice(key, self._shapes[name], *self._slice(name, part))
        if self._rank == 0:
            yield Slice(UPDATES, (), 0, self._updates.made.reshape(1))

    @torch.no_grad()
    def restore(self, weights: Mapping[str, Tensor], moments: Mapping[str, Tensor], step: int) -> None:
        self._updates.begin_at(step, float(moments.get(UPDATES, step)))
        for kind, name, part in self._updates.parts():
            model = weights[name] if kind in (WEIGHT, AVERAGE) else None
            whole = moments.get(f"{kind}/{name}", model)
            if whole is not None:  # another optimizer had no such moment
                part.copy_(self._own(name, whole))

    def scaling(self) -> dict[str, float]:
        return {}

    def restore_scaling(self, found: Mapping[str, float]) -> None:
        """Nothing to restore."""

    # What an engine of many processes does otherwise

    def _forward(self, *fields: Tensor | None) -> Sums:
        sums: Sums = self.module(*fields)
        return sums

    def _norm(self, gradients: list[Tensor]) -> Tensor:
        """The norm of the whole gradient, of which this process holds ``gradients``."""
        return get_total_norm(gradients)

    def _part(self, p: nn.Parameter) -> nn.Parameter:
        """What this process updates of a parameter."""
        return p

    def _whole(self, name: str, part: Tensor) -> Tensor:
        """The whole of something that lies as the part of a parameter does; all processes call it together."""
        return part

    def _slice(self, name: str, part: Tensor) -> tuple[int, Tensor]:
        """Start and values of what this process writes of it."""
        return even_slice(part, self._rank, self._ranks)

    def _own(self, name: str, whole: Tensor) -> Tensor:
        """This process's part of it."""
        return whole

    def _attention(self, ids_BL: Tensor | None) -> AbstractContextManager[None]:
        """Plain products for short rows on CPUs: 3 to 4 % faster a step there than torch's blockwise attention."""
        is_short = ids_BL is not None and ids_BL.shape[1] <= SHORT_ROW and ids_BL.device.type == "cpu"
        return sdpa_kernel(SDPBackend.MATH) if is_short and not self._is_compiled else nullcontext()
