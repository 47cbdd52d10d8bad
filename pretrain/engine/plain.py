"""Training in one process with torch alone: for laptops and single GPUs, and nothing to install beside torch.

Weights, gradients and updates are float32. In bf16 the matrix products alone are bf16, by torch's autocast: residual
stream, LayerNorm and the sums over micro-batches stay float32, so the gradient's error against float64 is a fifth of
that of a model in bf16 throughout (docs/pretrain.md). The price is a bf16 copy of each matrix, made in every
micro-batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from pretrain.config import PretrainConfig
from pretrain.engine.optimizer import MOMENTS, UPDATES, adamw, leave_out_unless_finite
from pretrain.engine.world import World
from pretrain.model.module import PretrainingModule, Sums

SHORT_ROW = 128  # tokens; at 512 blockwise attention is the faster one


class PlainEngine:
    """One process; see ``pretrain.engine.start.Engine``. The module is moved to the device."""

    def __init__(self, config: PretrainConfig, module: PretrainingModule, world: World) -> None:
        self.module: nn.Module = module.to(world.device)
        self._weights = {name: self._part(p) for name, p in module.network.named_parameters()}
        self._clip = config.optimizer.clip
        self._is_compiled = config.engine.compile  # brings its own attention
        self._optimizer = adamw(config, list(self._weights.values()))

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
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        leave_out_unless_finite(self._optimizer, norm)
        self._optimizer.step()
        self._optimizer.zero_grad()
        return norm

    def state(self, *, keep: bool) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        weights: dict[str, Tensor] = {}
        moments: dict[str, Tensor] = {}
        for name, p in self._weights.items():
            whole = self._whole(name, p.detach())
            averages = {f"{key}/{name}": self._whole(name, self._optimizer.state[p][key]) for key in MOMENTS}
            if keep:
                weights[name] = whole.cpu()
                moments |= {key: value.cpu() for key, value in averages.items()}
                moments[UPDATES] = self._optimizer.state[p]["step"].cpu()
        return weights, moments

    def restore(self, weights: Mapping[str, Tensor], moments: Mapping[str, Tensor], step: int) -> None:
        updates = float(moments.get(UPDATES, step))
        with torch.no_grad():
            for name, p in self._weights.items():
                p.copy_(self._own(name, weights[name]))
                self._optimizer.state[p] = {
                    "step": torch.tensor(updates, device=p.device),
                    **{key: self._own(name, moments[f"{key}/{name}"]).to(p.device, copy=True) for key in MOMENTS},
                }

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

    def _own(self, name: str, whole: Tensor) -> Tensor:
        """This process's part of it."""
        return whole

    def _attention(self, ids_BL: Tensor | None) -> AbstractContextManager[None]:
        """Plain products for short rows on CPUs: 3 to 4 % faster a step there than torch's blockwise attention."""
        is_short = ids_BL is not None and ids_BL.shape[1] <= SHORT_ROW and ids_BL.device.type == "cpu"
        return sdpa_kernel(SDPBackend.MATH) if is_short and not self._is_compiled else nullcontext()
