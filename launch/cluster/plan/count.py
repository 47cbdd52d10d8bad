"""What a pretraining takes on GPUs that are not there: time, memory, disk and network, from the recipe alone.

Operations and memory are counted (``flops_per_token``, ``needed_memory``); the share of the peak at which a GPU works
through them is an assumption of whoever asks. Bytes sent are those of ring collectives, as NCCL does them: N - 1 of N
parts for a gather or a scatter, twice that for a sum that all get.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from corpus.documents.errors import BadInput
from launch.checks.estimate import GIB, SAVED_BYTES, planned_flops, planned_tokens
from launch.cluster.plan.gpus import Gpu
from launch.recipe import Recipe
from pretrain.config import PretrainConfig
from pretrain.engine.memory import Needed, host_memory_of_offload, needed_memory
from pretrain.model.sizes import count_parameters

FULL = 0.9  # of a GPU's memory: the rest is the driver's, NCCL's, and what fragments
LOADER_TOKENS = 29.8e6  # a second and core, from order to tensors (docs/pretrain.md, Speed)
MODEL_BYTES = 4  # a parameter
WIDEST_SHORT_ID = 32_768  # pieces up to which the token store has two bytes a token, four above


@dataclass(frozen=True, slots=True)
class Way:
    """An engine that training can be given to, as ``pretrain.engine`` names it."""

    name: str
    settings: dict[str, Any]

    def config(self, config: PretrainConfig, precision: str) -> PretrainConfig:
        """The settings of a run with it."""
        return config.replaced("engine", **(self.settings | {"precision": precision}))

    def refuses(self, config: PretrainConfig, precision: str) -> bool:
        """Whether the run's optimizer or precision does not go with it (``pretrain.engine.start.choose_engine``)."""
        is_deepspeed, stage = self.settings["name"] == "deepspeed", self.settings.get("zero_stage")
        whole_matrices = config.optimizer.name == "muon" and self.settings["name"] != "ddp"
        return (
            whole_matrices
            or bool(config.optimizer.ema and is_deepspeed)
            or (precision == "fp16" and not (is_deepspeed and stage))
        )


WAYS = (
    Way("ddp", {"name": "ddp", "offload": False}),
    Way("fsdp (FSDP2)", {"name": "fsdp", "offload": False}),
    *(
        Way(f"ZeRO {stage}{', offload' * offload}", {"name": "deepspeed", "zero_stage": stage, "offload": offload})
        for offload in (False, True)
        for stage in range(offload, 4)
    ),
)


@dataclass(frozen=True, slots=True)
class Work:
    """What is trained: ``tokens`` of the whole run, padding counted, and ``flops`` for all of them."""

    parameters: int
    tokens: int
    flops: float
    steps: int
    vocab_size: int

    @property
    def flops_per_token(self) -> float:
        """The mean over the run."""
        return self.flops / self.tokens


def work_of(recipe: Recipe) -> Work:
    """Of a recipe's pretraining; BadInput where its sizes are those of a published model."""
    config, vocab_size = recipe.pretrain, recipe.tokenizer.vocab_size
    if config.init_from is not None:
        raise BadInput(
            f"{recipe.name}: its sizes are those of pretrain.init_from ({config.init_from}); plan a recipe of these "
            "sizes with its steps, such as klue-roberta-base pretrain.steps=20000"
        )
    parameters = count_parameters(config.model, vocab_size)
    return Work(parameters, planned_tokens(recipe), planned_flops(recipe), config.steps, vocab_size)


@dataclass(frozen=True, slots=True)
class Speed:
    """Tokens a second of all GPUs together, seconds of the run, and its price, None where none is given."""

    tokens_per_second: float
    seconds: float
    cost: float | None


def speed(work: Work, gpu: Gpu, precision: str, gpus: int, mfu: float, price_per_hour: float | None) -> Speed:
    """At ``mfu``, the share of the peak that is useful work; ``price_per_hour``: of one GPU."""
    seconds = work.flops / (gpus * gpu.peak(precision) * mfu)
    cost = None if price_per_hour is None else seconds / 3600 * gpus * price_per_hour
    return Speed(work.tokens / seconds, seconds, cost)


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes on one GPU with ``sequences`` at once, the most that fit (0: not one does, and ``needed`` is of one).

    ``host``: of the optimizer in host memory, a process.
    """

    way: Way
    sequences: int
    needed: Needed
    host: float

    @property
    def fits(self) -> bool:
        return self.sequences > 0


def memory(config: PretrainConfig, work: Work, way: Way, gpu: Gpu, precision: str, gpus: int) -> Memory:
    """Of a way to train on ``gpus`` of these, with the largest micro-batch that fits and cuts a step evenly."""
    settings, usable = way.config(config, precision), FULL * gpu.memory_gib * GIB
    of_sizes = (
        (size, needed_memory(settings, work.vocab_size, work.parameters, size, gpus))
        for size in reversed(micro_batches(config, gpus))
    )
    least = needed_memory(settings, work.vocab_size, work.parameters, 1, gpus)
    sequences, needed = next(((size, found) for size, found in of_sizes if sum(found) <= usable), (0, least))
    host = host_memory_of_offload(work.parameters, gpus) if way.settings["offload"] else 0.0
    return Memory(way, sequences, needed, host)


def micro_batches(config: PretrainConfig, gpus: int) -> list[int]:
    """Every size that cuts a GPU's rows of a step evenly, causal and masked alike; BadInput where GPUs cannot."""
    both = math.gcd(config.causal_rows, config.global_batch - config.causal_rows)
    if both % gpus:
        raise BadInput(
            f"pretrain.global_batch {config.global_batch} cannot be shared evenly by {gpus} GPUs; set it to a "
            f"multiple of {gpus}, such as {max(1, round(config.global_batch / gpus)) * gpus}, or use other --nodes"
        )
    share = both // gpus
    return [size for size in range(1, share + 1) if share % size == 0]


def bytes_sent(config: PretrainConfig, work: Work, found: Memory, precision: str, gpus: int) -> float:
    """Bytes that each GPU sends in a step, which in a ring is also what leaves each node.

    DDP and ZeRO 0 and 1 sum gradients once a step, ZeRO 2 after each micro-batch (DeepSpeed sums them on all processes,
    its setting for it notwithstanding); ZeRO 1 and 2 gather the new weights. FSDP and ZeRO 3 gather weights for each
    forward and backward pass; FSDP scatters gradients once a step, ZeRO 3 after each micro-batch.
    """
    turns = config.global_batch // gpus // max(found.sequences, 1)
    part = (gpus - 1) / gpus * (2.0 if precision == "fp16" else 4.0) * work.parameters
    stage = 3 if found.way.settings["name"] == "fsdp" else found.way.settings.get("zero_stage", 0)
    if stage == 3:
        return part * (2 * turns + (1 if found.way.settings["name"] == "fsdp" else turns))
    sums, gathers = (turns if stage == 2 else 1), (1 if stage else 0)
    return part * (2 * sums + gathers)


def link_for(sent: float, step_seconds: float, share: float) -> float:
    """Bytes a second at which sending takes this share of a step, where nothing of it is hidden behind the work."""
    return sent / (share * step_seconds)


@dataclass(frozen=True, slots=True)
class Disk:
    """Bytes: the finished model, its optimizer's averages, a checkpoint (both), and all that a run keeps at once."""

    model: float
    optimizer: float
    checkpoint: float
    run: float


def disk_of(config: PretrainConfig, work: Work) -> Disk:
    """As ``pretrain.checkpoint.checkpoints.require_disk_space`` counts it: kept ones, the best, one being written."""
    each = (SAVED_BYTES + MODEL_BYTES * bool(config.optimizer.ema)) * work.parameters
    model = MODEL_BYTES * work.parameters
    return Disk(model, each - model, each, each * (config.saved.keep_checkpoints + 2) + model)


def possible_ways(config: PretrainConfig, precision: str) -> Iterator[Way]:
    """Those that take the recipe's optimizer and this precision."""
    return (way for way in WAYS if not way.refuses(config, precision))
