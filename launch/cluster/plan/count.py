"""Requirements of a pretraining on GPUs: time, memory, disk and network, computed from the recipe.

Operations and memory are counted (``flops_per_token``, ``needed_memory``); the share of the peak (MFU) is an
assumption. Bytes sent are those of ring collectives of NCCL: (N - 1) / N of the data for a gather or a scatter, twice
that for an all-reduce.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from corpus.documents.errors import BadInput
from launch.checks.estimate import planned_flops, planned_tokens
from launch.cluster.plan.gpus import Gpu
from launch.recipe import Recipe
from pretrain.config import PretrainConfig
from pretrain.engine.memory import CHECKPOINT_BYTES, GIB, MODEL_BYTES, Needed, needed_memory
from pretrain.model.sizes import count_parameters

MAX_FILL = 0.9  # of a GPU's memory: the rest is for the driver, NCCL and fragmentation
LOADER_TOKENS = 29.8e6  # per second and core, measured (docs/pretrain.md)
MAX_SHORT_VOCABULARY = 32_768  # pieces up to which the token store has two bytes per token; four above


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """An engine, with its settings in ``pretrain.engine``."""

    name: str
    settings: dict[str, Any]

    def config(self, config: PretrainConfig, precision: str) -> PretrainConfig:
        """The settings of a run with this engine."""
        return config.replaced("engine", **(self.settings | {"precision": precision}))

    def refuses(self, precision: str) -> bool:
        """Whether the engine does not support the precision (``pretrain.engine.start.choose_engine``)."""
        return precision == "fp16" and not self.settings.get("zero_stage")


ENGINES = (
    EngineChoice("ddp", {"name": "ddp"}),
    *(EngineChoice(f"ZeRO {stage}", {"name": "deepspeed", "zero_stage": stage}) for stage in range(4)),
)


@dataclass(frozen=True, slots=True)
class Work:
    """The training work; ``tokens`` include padding."""

    parameters: int
    tokens: int
    flops: float
    steps: int
    vocab_size: int

    @property
    def flops_per_token(self) -> float:
        """Mean of the run."""
        return self.flops / self.tokens


def work_of(recipe: Recipe) -> Work:
    """The work of a recipe's pretraining; BadInput if its sizes come from a published model."""
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
    """Tokens per second of all GPUs together, seconds of the run, and its cost, None without a price."""

    tokens_per_second: float
    seconds: float
    cost: float | None


def speed(work: Work, gpu: Gpu, precision: str, gpus: int, mfu: float, price_per_hour: float | None) -> Speed:
    """Speed at ``mfu``, the share of the peak that is useful work; ``price_per_hour``: of one GPU."""
    seconds = work.flops / (gpus * gpu.peak(precision) * mfu)
    cost = None if price_per_hour is None else seconds / 3600 * gpus * price_per_hour
    return Speed(work.tokens / seconds, seconds, cost)


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes on one GPU with ``sequences`` at once, the most that fit (0: not even one, and ``needed`` is for one)."""

    engine: EngineChoice
    sequences: int
    needed: Needed

    @property
    def fits(self) -> bool:
        return self.sequences > 0


def memory(config: PretrainConfig, work: Work, engine: EngineChoice, gpu: Gpu, precision: str, gpus: int) -> Memory:
    """Memory of an engine on ``gpus`` of these GPUs, with the largest micro-batch that fits and divides a step."""
    settings, usable = engine.config(config, precision), MAX_FILL * gpu.memory_gib * GIB
    of_sizes = (
        (size, needed_memory(settings, work.vocab_size, work.parameters, size, gpus))
        for size in reversed(micro_batches(config, gpus))
    )
    least = needed_memory(settings, work.vocab_size, work.parameters, 1, gpus)
    sequences, needed = next(((size, found) for size, found in of_sizes if sum(found) <= usable), (0, least))
    return Memory(engine, sequences, needed)


def micro_batches(config: PretrainConfig, gpus: int) -> list[int]:
    """Every divisor of a GPU's rows of a step; BadInput if the GPUs cannot share a step evenly."""
    if config.global_batch % gpus:
        raise BadInput(
            f"pretrain.global_batch {config.global_batch} is not divisible by {gpus} GPUs; set it to a multiple of "
            f"{gpus}, such as {max(1, round(config.global_batch / gpus)) * gpus}, or use other --nodes"
        )
    share = config.global_batch // gpus
    return [size for size in range(1, share + 1) if share % size == 0]


def bytes_sent(config: PretrainConfig, work: Work, memory: Memory, precision: str, gpus: int) -> float:
    """Bytes that each GPU sends in a step, which in a ring is also what leaves each node.

    DDP and ZeRO 0 and 1 sum gradients once per step, ZeRO 2 after each micro-batch (DeepSpeed sums them on all
    processes, whatever its setting); ZeRO 1 and 2 gather the new weights. ZeRO 3 gathers weights for each forward and
    backward pass and scatters gradients after each micro-batch.
    """
    micro_batch_count = config.global_batch // gpus // max(memory.sequences, 1)
    part = (gpus - 1) / gpus * (2.0 if precision == "fp16" else 4.0) * work.parameters
    stage = memory.engine.settings.get("zero_stage", 0)
    if stage == 3:
        return part * 3 * micro_batch_count
    sums, gathers = (micro_batch_count if stage == 2 else 1), (1 if stage else 0)
    return part * (2 * sums + gathers)


@dataclass(frozen=True, slots=True)
class Disk:
    """Bytes: the finished model, the moments of its optimizer, a checkpoint (both), and the maximum of a run."""

    model: float
    optimizer: float
    checkpoint: float
    run: float


def disk_of(config: PretrainConfig, work: Work) -> Disk:
    """As ``pretrain.checkpoint.checkpoints.require_disk_space``: kept ones, the best, the one being written."""
    each, model = CHECKPOINT_BYTES * work.parameters, MODEL_BYTES * work.parameters
    return Disk(model, each - model, each, each * (config.saved.keep_checkpoints + 2) + model)
