"""Training with DeepSpeed (``deepspeed.initialize`` with torch's AdamW): several processes, ZeRO stages 0 to 3, fp16.

DeepSpeed sees float32 only; bf16 is autocast inside the module. Its checks of the gradient wait for the device in every
step, so norm and clipping are computed here, except at stage 3 and in fp16. State is saved by parameter, in full or in
slices, so checkpoints do not depend on the stage or the number of processes.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.utils import get_total_norm

from pretrain.config import PretrainConfig
from pretrain.engine.optimizer import (
    MODEL,
    MOMENTS,
    SCALE,
    UPDATES,
    Slice,
    adamw,
    fit_micro_batch,
    on_host,
    skip_unless_finite,
)
from pretrain.engine.world import World
from pretrain.model.loss import PretrainingModule, Sums

SCALER_NAMES = (SCALE, "cur_iter", "last_overflow_iter", "cur_hysteresis")


def zero_settings(config: PretrainConfig, ranks: int) -> dict[str, Any]:
    """The DeepSpeed configuration of the recipe; also saved as a record."""
    micro_batch = fit_micro_batch(config, ranks)
    checks = _checks_itself(config)
    stage: dict[str, Any] = {"stage": config.engine.zero_stage}
    if config.engine.zero_stage in (1, 2):
        stage["compute_grad_norm"] = checks
    return {
        "train_batch_size": config.global_batch,
        "train_micro_batch_size_per_gpu": micro_batch,
        "gradient_accumulation_steps": config.global_batch // ranks // micro_batch,
        "gradient_clipping": config.optimizer.clip if checks else 0.0,  # otherwise ``ZeroEngine.update`` clips
        "zero_optimization": stage,
        "fp16": {"enabled": config.engine.precision == "fp16"},
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
        "steps_per_print": 2**31,
    }


def _checks_itself(config: PretrainConfig) -> bool:
    """Whether DeepSpeed itself computes the norm, clips, and skips a gradient that is not finite."""
    return config.engine.zero_stage == 3 or config.engine.precision == "fp16"


@contextmanager
def deepspeed_group(world: World) -> Iterator[None]:
    """The process group of DeepSpeed, without its shared-memory collective for CPUs, which needs a compiler."""
    if world.device.type == "cpu":
        os.environ.setdefault("DS_ACCELERATOR", "cpu")  # avoids a warning about missing GPUs
    rank_variable, linear = {k: v for k, v in os.environ.items() if k == "LOCAL_RANK"}, nn.functional.linear
    if not rank_variable or world.device.type == "cuda":  # DeepSpeed reads its device from it, whatever else is visible
        os.environ["LOCAL_RANK"] = str(world.device.index or 0)
    try:
        if not dist.is_initialized():
            dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        import deepspeed

        if world.device.type == "cpu":
            # the private table of extensions that can be compiled: emptying it is the only way to avoid the collective;
            # a test without a compiler covers this line
            deepspeed.ops.__compatible_ops__ = {}
        deepspeed.init_distributed(verbose=False)
        yield
    finally:
        deepspeed.comm.destroy_process_group()  # the group of torch and those that DeepSpeed derived from it
        nn.functional.linear = linear  # ZeRO 3 leaves its own version there, which rounds differently
        os.environ.pop("LOCAL_RANK", None)  # other libraries would assume a launcher
        os.environ.update(rank_variable)


class ZeroEngine:
    """One of several processes; see ``pretrain.engine.start.ShardedEngine``."""

    def __init__(self, config: PretrainConfig, module: PretrainingModule, world: World) -> None:
        import deepspeed

        settings = zero_settings(config, world.size)
        module.to(world.device)
        self._engine, *_ = deepspeed.initialize(
            model=module,
            optimizer=adamw(config, list(module.parameters())),
            config=settings,
            dist_init_required=False,
        )
        if config.engine.compile is True:
            self._engine.compile(compile_kwargs={"dynamic": False})
        self.module: nn.Module = module
        self._named = dict(module.network.named_parameters())
        self._stage, self._is_exact = config.engine.zero_stage, config.engine.precision != "fp16"
        self._micro_batches = settings["gradient_accumulation_steps"]
        self._processes, self._rank, self._utils = world.size, world.rank, deepspeed.utils
        self._clip, self._checks_itself = config.optimizer.clip, _checks_itself(config)

    def __call__(self, *fields: Any) -> Sums:
        sums: Sums = self._engine(*fields)
        return sums

    def begin_step(self, micro_batches: int) -> None:
        if micro_batches != self._micro_batches:
            each = self._engine.train_micro_batch_size_per_gpu() * self._processes
            self._engine.set_train_batch_size(each * micro_batches)
            self._micro_batches = micro_batches

    def backward(self, loss: Tensor) -> None:
        self._engine.backward(loss * self._processes * self._micro_batches)  # the engine averages over both
        if not self._engine.is_gradient_accumulation_boundary():
            self._engine.step()  # only counts

    def update(self, rate: float) -> Tensor | float | None:
        for group in self._engine.optimizer.param_groups:
            group["lr"] = rate
        if self._checks_itself:
            self._engine.step()
            return self._engine.get_global_grad_norm() if self._engine.was_step_applied() else math.inf
        if self._stage:  # private: the parts with which this process updates
            gradients = [part for group in self._engine.optimizer.averaged_gradients.values() for part in group]
        else:
            gradients = [p.grad for p in self._named.values() if p.grad is not None]
        norm = get_total_norm(gradients)
        if self._stage:  # each process holds a part of the gradient
            squared = norm.square()
            dist.all_reduce(squared)
            norm = squared.sqrt()
        if self._clip:
            torch._foreach_mul_(gradients, (self._clip / (norm + 1e-6)).clamp(max=1.0))  # as in torch
        skip_unless_finite(self._base, norm)
        self._engine.step()
        return norm

    def state(self, *, keep: bool) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        weights: dict[str, Tensor] = {}
        moments: dict[str, Tensor] = {}
        self._link_moments()
        for name, p in self._named.items():
            whole = self._gather(p, None)
            averages = {f"{key}/{name}": self._gather(p, key) for key in MOMENTS}
            if keep:
                weights[name] = on_host(whole)
                moments |= {key: on_host(value) for key, value in averages.items()}
        if keep:
            moments[UPDATES] = on_host(next(iter(self._base.state.values()))["step"])
        return weights, moments

    def slices(self) -> Iterator[Slice]:
        self._link_moments()
        for name, p in self._named.items():
            shape = tuple(p.ds_shape if hasattr(p, "ds_shape") else p.shape)
            for kind, key in ((MODEL, None), *((key, key) for key in MOMENTS)):
                yield Slice(f"{kind}/{name}", shape, *self._slice(p, key))
        if self._rank == 0:
            yield Slice(UPDATES, (), 0, next(iter(self._base.state.values()))["step"].reshape(1))

    @torch.no_grad()
    def restore(self, weights: Mapping[str, Tensor], moments: Mapping[str, Tensor], step: int) -> None:
        optimizer, base, updates = self._engine.optimizer, self._base, float(moments.get(UPDATES, step))
        sharded = "fp32_partitioned_groups_flat" if self._stage == 3 else "single_partition_of_fp32_groups"
        # zero moments, which AdamW would make at its first update
        for p in list(self._named.values()) if self._stage == 0 else getattr(optimizer, sharded):
            base.state[p] = {"step": torch.tensor(updates, device=p.device)}
            base.state[p] |= {key: torch.zeros_like(p) for key in MOMENTS}
        self._link_moments()
        for name, p in self._named.items():
            for key in MOMENTS:
                self._scatter(p, moments[f"{key}/{name}"].to(p.device), key)
            if not self._is_exact:  # the engine made its float32 weights from the rounded ones
                self._scatter(p, weights[name].to(p.device), None)

    def scaling(self) -> dict[str, float]:
        if self._is_exact:  # its scale is 1
            return {}
        scaler = self._engine.optimizer.loss_scaler
        return {name: getattr(scaler, name) for name in SCALER_NAMES if hasattr(scaler, name)}

    def restore_scaling(self, scaling: Mapping[str, float]) -> None:
        for name in SCALER_NAMES:
            if name in scaling and not self._is_exact:
                setattr(self._engine.optimizer.loss_scaler, name, scaling[name])

    @property
    def _base(self) -> torch.optim.Optimizer:
        """The optimizer of torch, which DeepSpeed wraps from stage 1 on."""
        optimizer = self._engine.optimizer
        base: torch.optim.Optimizer = optimizer if self._stage == 0 else optimizer.optimizer
        return base

    def _gather(self, p: nn.Parameter, key: str | None) -> Tensor:
        if self._stage == 0:
            whole = p.detach() if key is None else self._engine.optimizer.state[p][key]
        elif key is None:
            whole = self._utils.safe_get_full_fp32_param(p)
        else:
            whole = self._utils.safe_get_full_optimizer_state(p, key)
        return whole.reshape(p.ds_shape if hasattr(p, "ds_shape") else p.shape)

    def _slice(self, p: Any, key: str | None) -> tuple[int, Tensor]:
        """Start and values of this process's part of a parameter, or of its moment ``key``; from stage 1 on."""
        utils: Any = self._utils
        if self._stage == 3:
            part = utils.safe_get_local_fp32_param(p) if key is None else utils.safe_get_local_optimizer_state(p, key)
            start = min(part.numel() * self._rank, p.ds_numel)  # the last part is padded
            return start, part.detach().flatten()[: p.ds_numel - start]
        held = p._hp_mapping  # private; None if this process holds nothing of it
        if held is None:
            return 0, torch.empty(0)
        return held.lp_fragment_address.start, held.get_hp_fragment(key).detach().flatten()

    def _scatter(self, p: nn.Parameter, whole: Tensor, key: str | None) -> None:
        utils = self._utils
        if self._stage == 0:
            self._engine.optimizer.state[p][key].copy_(whole)
        elif self._stage == 3:
            # parameters are split into equal parts, the last one padded; DeepSpeed's own function ignores the padding
            part = utils.safe_get_local_fp32_param(p) if key is None else utils.safe_get_local_optimizer_state(p, key)
            own = whole.flatten()[part.numel() * self._rank :][: part.numel()]
            part.flatten()[: own.numel()].copy_(own)
            if key is None:
                utils.safe_set_local_fp32_param(p, part)
            else:
                utils.safe_set_local_optimizer_state(p, part, key)
        elif key is None:
            utils.safe_set_full_fp32_param(p, whole)
        else:
            utils.safe_set_full_optimizer_state(p, whole, key)

    def _link_moments(self) -> None:
        """Link parameters to their moments; private.

        DeepSpeed does this at the first update, but only if the first group of parameters alone has moments.
        """
        if self._stage in (1, 2):
            optimizer = self._engine.optimizer
            optimizer._hp_optimizer_states_linked = False
            optimizer._lazy_init_hp_params_optimizer_state()
