"""``malmoi pretrain RECIPE --dry-run --gpus 8xa100-80``: days and memory on GPUs that are not at hand, without torch.

Operations and memory are counted from the recipe (``flops_per_token``, ``needed_memory``). The share of a GPU's peak
that is useful work is that of published trainings (``mfu_range``). Networks, checkpoints and failures are not included.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from launch.checks.estimate import planned_flops, planned_tokens
from launch.console import PlainConsole, number_table, print_table
from launch.errors import LaunchError
from launch.numbers import duration
from launch.recipe import Recipe
from pretrain.engine.memory import GIB, Needed, needed_memory
from pretrain.metrics.device_speed import mfu_range, peak_flops
from pretrain.model.sizes import count_parameters

GPUS = {  # name: its name in torch, GiB of memory by NVIDIA's datasheet
    "v100-16": ("Tesla V100-SXM2-16GB", 16),
    "v100-32": ("Tesla V100-SXM2-32GB", 32),
    "a100-40": ("NVIDIA A100-SXM4-40GB", 40),
    "a100-80": ("NVIDIA A100-SXM4-80GB", 80),
    "h100": ("NVIDIA H100 80GB HBM3", 80),
    "h200": ("NVIDIA H200", 140),  # 141 GB
}
MAX_FILL = 0.9  # of a GPU's memory: the rest is for the driver, NCCL and fragmentation
ENGINES: dict[str, dict[str, Any]] = {  # settings of pretrain.engine
    "ddp": {"name": "ddp"},
    **{f"ZeRO {stage}": {"name": "deepspeed", "zero_stage": stage} for stage in range(4)},
}


class GpuPlan(NamedTuple):
    """A recipe on ``devices`` GPUs; ``seconds`` at the lower and the higher share of the peak."""

    recipe: Recipe
    gpu: str
    devices: int
    precision: str
    seconds: tuple[float, ...]

    @property
    def parameters(self) -> int:
        return count_parameters(self.recipe.pretrain.model, self.recipe.tokenizer.vocab_size)

    def memory(self) -> Iterator[tuple[str, int, Needed]]:
        """For each engine that supports the precision: the most sequences that fit on a GPU at once and divide its
        part of a step (0: not even one), and the bytes for these, or for one."""
        config, usable = self.recipe.pretrain, MAX_FILL * GPUS[self.gpu][1] * GIB
        share = config.global_batch // self.devices
        for name, engine in ENGINES.items():
            if self.precision == "fp16" and engine.get("zero_stage") == 0:
                continue  # training refuses it
            settings = config.replaced("engine", **engine, precision=self.precision)
            needed = {
                size: needed_memory(settings, self.recipe.tokenizer.vocab_size, self.parameters, size, self.devices)
                for size in range(1, share + 1)
                if share % size == 0
            }
            max_sequences = max((size for size, memory in needed.items() if sum(memory) <= usable), default=0)
            yield name, max_sequences, needed[max_sequences or 1]


def plan_on_gpus(recipe: Recipe, gpus: str) -> GpuPlan:
    """The plan for ``gpus``, such as 8xa100-80; ``LaunchError`` if they are unknown or cannot train the recipe."""
    config, match = recipe.pretrain, re.fullmatch(r"(?:([1-9]\d{0,5})x)?(\S+)", gpus.lower())
    if match is None or match[2] not in GPUS:
        raise LaunchError(f"--gpus {gpus}: expected a number and a GPU, such as 8xa100-80; GPUs are {', '.join(GPUS)}")
    count, gpu = int(match[1] or 1), match[2]
    if config.init_from is not None:
        raise LaunchError(
            f"{recipe.name}: its sizes are those of pretrain.init_from ({config.init_from}); plan a recipe of these "
            "sizes with its steps, such as klue-roberta-base pretrain.steps=20000"
        )
    if config.global_batch % count:
        raise LaunchError(
            f"pretrain.global_batch {config.global_batch} is not divisible by {count} GPUs; set it to a multiple of "
            f"{count}, such as {max(1, round(config.global_batch / count)) * count}"
        )
    has_bf16, precision = peak_flops(GPUS[gpu][0], "bf16") is not None, config.engine.precision
    if precision == "bf16" and not has_bf16:
        raise LaunchError(f"pretrain.engine.precision=bf16: {gpu} has no bf16; use auto or fp16")
    precision = precision if precision != "auto" else "bf16" if has_bf16 else "fp16"
    peak = count * (peak_flops(GPUS[gpu][0], precision) or 0.0)
    shares = mfu_range(GPUS[gpu][0])
    return GpuPlan(recipe, gpu, count, precision, tuple(planned_flops(recipe) / (peak * share) for share in shares))


def show_gpu_plan(plan: GpuPlan) -> None:
    """Print the sizes of the training, its time, and memory by engine."""
    console, config, tokens = PlainConsole(soft_wrap=True), plan.recipe.pretrain, planned_tokens(plan.recipe)
    console.print(
        f"{plan.recipe.name}: {plan.parameters / 1e6:.2f} M parameters; {config.steps:,} steps of "
        f"{config.global_batch:,} rows, {tokens:.3g} tokens".replace("e+", "e")
    )
    shares = " and ".join(f"{share:.0%}" for share in mfu_range(GPUS[plan.gpu][0]))
    speeds = " and ".join(f"{tokens / seconds / 1e6:,.2f}" for seconds in plan.seconds)
    console.print(
        f"time on {plan.devices} x {plan.gpu} in {plan.precision}, at {shares} of the peak: "
        f"{' and '.join(map(duration, plan.seconds))} ({speeds} M tokens per second)"
    )
    rows = []
    for engine, max_sequences, needed in plan.memory():
        sequence = (needed.activations + needed.scores) / max(max_sequences, 1)
        sizes = (needed.weights, needed.gradients, needed.moments, needed.buffers, sequence)
        rows.append([engine, *(f"{size / GIB:.2f}" for size in sizes), f"{max_sequences:,}" if max_sequences else "no"])
    heads = ("engine", "weights", "gradients", "moments", "buffers", "a sequence", "fit")
    note = f"fit: most sequences at once; in a step, each GPU has {config.global_batch // plan.devices:,}"
    print_table(number_table("Memory of each GPU, GiB", heads, rows, note), console)
