"""Training in one process with torch alone: for laptops and single GPUs, and nothing to install beside torch.

In bf16 the model is in bf16 throughout and every update happens in float32 weights beside it, as DeepSpeed does it;
gradients are added up in float32, so many micro-batches lose nothing. The price is 6 bytes a parameter more.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from pretrain.config import PretrainConfig
from pretrain.engine.optimizer import MOMENTS, adamw
from pretrain.model.module import PretrainingModule, Sums

SHORT_ROW = 128  # tokens; at 512 blockwise attention is the faster one


class PlainEngine:
    """One process; see ``pretrain.engine.start.Engine``. The module is moved, and for bf16 turned into it."""

    def __init__(self, config: PretrainConfig, module: PretrainingModule, device: torch.device) -> None:
        self.module: nn.Module = module.to(device)
        self._weights = dict(module.network.named_parameters())
        self._parameters = list(self._weights.values())
        self._keeps_both = config.engine.precision == "bf16"
        if self._keeps_both:
            self._weights = {name: nn.Parameter(p.detach().clone()) for name, p in self._weights.items()}
            module.to(torch.bfloat16)
            for p, weight in zip(self._parameters, self._weights.values(), strict=True):
                p.register_post_accumulate_grad_hook(partial(_hand_over, weight))
        self._clip = config.optimizer.clip
        self._is_compiled = config.engine.compile  # brings its own attention
        self._optimizer = adamw(config, list(self._weights.values()))

    def __call__(self, *fields: Tensor | None) -> Sums:
        with self._attention(fields[0]):
            sums: Sums = self.module(*fields)
        return sums

    def backward(self, loss: Tensor) -> None:
        loss.backward()

    def update(self, rate: float) -> Tensor:
        weights = [p for p in self._weights.values() if p.grad is not None]
        norm = get_total_norm([p.grad for p in weights if p.grad is not None])
        if self._clip:
            clip_grads_with_norm_(weights, self._clip, norm)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.step()
        self._optimizer.zero_grad()
        self._copy_to_module()
        return norm

    def state(self, *, keep: bool) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        weights = {name: p.detach().cpu() for name, p in self._weights.items()}
        states = {name: self._optimizer.state[p] for name, p in self._weights.items()}
        return weights, {f"{key}/{name}": state[key].cpu() for key in MOMENTS for name, state in states.items()}

    def restore(self, weights: Mapping[str, Tensor], moments: Mapping[str, Tensor], step: int) -> None:
        with torch.no_grad():
            for name, p in self._weights.items():
                p.copy_(weights[name])
                self._optimizer.state[p] = {
                    "step": torch.tensor(float(step), device=p.device),
                    **{key: moments[f"{key}/{name}"].to(p.device, copy=True) for key in MOMENTS},
                }
        self._copy_to_module()

    def scaling(self) -> dict[str, float]:
        return {}

    def restore_scaling(self, found: Mapping[str, float]) -> None:
        """Nothing to restore."""

    def _attention(self, ids_BL: Tensor | None) -> AbstractContextManager[None]:
        """Plain products for short rows on CPUs: 3 to 4 % faster a step there than torch's blockwise attention."""
        is_short = ids_BL is not None and ids_BL.shape[1] <= SHORT_ROW and ids_BL.device.type == "cpu"
        return sdpa_kernel(SDPBackend.MATH) if is_short and not self._is_compiled else nullcontext()

    def _copy_to_module(self) -> None:
        if self._keeps_both:
            with torch.no_grad():
                torch._foreach_copy_(self._parameters, list(self._weights.values()))


def _hand_over(weight: nn.Parameter, p: Tensor) -> None:
    """Add a parameter's new gradient to that of its float32 weight."""
    assert p.grad is not None
    weight.grad = p.grad.float() if weight.grad is None else weight.grad.add_(p.grad)
    p.grad = None
