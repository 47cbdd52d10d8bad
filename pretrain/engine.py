"""DeepSpeed, by ``deepspeed.initialize`` with a torch AdamW: the same engine on one CPU and on many GPUs.

A torch optimizer is handed in, because DeepSpeed would compile its own Adam (minutes of C++ at first use). Its
settings follow from the recipe; the learning rate is set by the loop, so there is no scheduler state to save.
"""

from __future__ import annotations

from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn

from pretrain.batches import Batch
from pretrain.config import BadInput, PretrainConfig
from pretrain.draws import derive_key
from pretrain.model import PretrainingModule, Sums, weight_decay_groups
from pretrain.world import World


class Engine(Protocol):
    """What the loop uses of a ``deepspeed.DeepSpeedEngine``."""

    optimizer: Any
    module: nn.Module

    def __call__(self, *fields: Tensor | None) -> Sums:
        """Sums over one micro-batch."""

    def backward(self, loss: Tensor) -> Tensor:
        """Accumulate gradients of ``loss / accumulation``, averaged over processes."""

    def step(self) -> None:
        """Update the weights when the last micro-batch of the step is done."""


def fit_micro_batch(config: PretrainConfig, ranks: int) -> int:
    """Sequences per micro-batch: the largest divisor of a process's share that is at most ``micro_batch``.

    Raises:
        BadInput: the processes cannot share the global batch equally.
    """
    if config.global_batch % ranks:
        nearest = max(ranks, round(config.global_batch / ranks) * ranks)
        raise BadInput(
            f"pretrain.global_batch {config.global_batch} is not divisible by {ranks} processes; "
            f"the nearest value that is: {nearest}"
        )
    share = config.global_batch // ranks
    return max(size for size in range(1, min(config.micro_batch, share) + 1) if share % size == 0)


def engine_settings(config: PretrainConfig, ranks: int) -> dict[str, Any]:
    """The DeepSpeed configuration that follows from the recipe; saved for the record, never edited by hand."""
    micro_batch = fit_micro_batch(config, ranks)
    return {
        "train_batch_size": config.global_batch,
        "train_micro_batch_size_per_gpu": micro_batch,
        "gradient_accumulation_steps": config.global_batch // ranks // micro_batch,
        "gradient_clipping": config.clip,
        "zero_optimization": {"stage": config.zero_stage},
        "bf16": {"enabled": config.precision == "bf16"},
        "fp16": {"enabled": config.precision == "fp16"},
        "zero_allow_untested_optimizer": True,
        "steps_per_print": 2**31,
    }


def start_engine(config: PretrainConfig, module: nn.Module, world: World) -> Any:
    """Wrap the module for training; returns a ``deepspeed.DeepSpeedEngine`` (see ``Engine``)."""
    import deepspeed  # not before the world is joined: its import already looks for devices

    module.to(world.device)
    optimizer = torch.optim.AdamW(
        weight_decay_groups(module, config.weight_decay),
        lr=config.lr,
        betas=config.betas,
        eps=config.epsilon,
        fused=True,
    )
    engine, *_ = deepspeed.initialize(
        model=module,
        optimizer=optimizer,
        config=engine_settings(config, world.size),
        dist_init_required=False,
    )
    return engine


def learning_rate(config: PretrainConfig, step: int) -> float:
    """Linear rise over the warm-up, then linear fall to zero behind the last step; ``step`` counts from 1."""
    warmup = round(config.steps * config.warmup_share)
    if step <= warmup:
        return config.lr * step / warmup
    return config.lr * (config.steps + 1 - step) / (config.steps - warmup)


def set_learning_rate(engine: Engine, rate: float) -> None:
    """Use ``rate`` from the next update on."""
    for group in engine.optimizer.param_groups:
        group["lr"] = rate


def seed_dropout(config: PretrainConfig, step: int, world: World) -> None:
    """Make the dropout of a step depend on (seed, step, rank) only, so that a resumed run repeats it."""
    torch.manual_seed(int(derive_key(config.seed, "dropout", step, world.rank)))


def run_forward(engine: Engine, batch: Batch, world: World) -> Sums:
    """Sums of one micro-batch on the engine's device."""
    return engine(*batch.to(world.device))


def full_precision_weights(engine: Engine) -> dict[str, Tensor]:
    """The Hugging Face model's weights in float32, gathered on every process; tied weights under their first name."""
    from deepspeed.utils import safe_get_full_fp32_param

    weights = {}
    for name, parameter in cast(PretrainingModule, engine.module).network.named_parameters():
        whole = safe_get_full_fp32_param(parameter)  # None where the engine keeps no second copy
        weights[name] = (parameter if whole is None else whole).detach().float().cpu()
    return weights
