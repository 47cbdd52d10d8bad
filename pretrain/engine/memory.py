"""The memory that training needs, counted before the first step, and one sentence where it does not suffice.

Counted are 16 bytes a parameter (float32 weights, gradients and Adam's two averages; cut over the processes where the
engine does so), what the backward pass needs of each layer (after arXiv 2205.05198, equation 2, without the products
of attention, which its kernels do not keep) and the scores over the vocabulary at the predictions. It tells what fits
from what does not, not 10 GiB from 12.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from corpus.documents.errors import BadInput
from pretrain.config import PretrainConfig
from pretrain.schedule import phases

if TYPE_CHECKING:
    import torch

    from pretrain.engine.world import World

GIB = 1 << 30
ACTIVATION_BYTES = {"fp32": 68, "bf16": 34, "fp16": 34}  # per token, layer and hidden unit
SCORE_BYTES = 8  # per prediction and piece: the scores and their shares
MOST_CAUSAL = 1 << 27  # scores at once where every token predicts (pretrain.model.module)
NO_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")  # torch's words on GPUs and CPUs


class Needed(NamedTuple):
    """Bytes on one device."""

    weights: float
    gradients: float
    averages: float
    activations: float
    scores: float


def needed_memory(config: PretrainConfig, vocab_size: int, parameters: int, sequences: int, ranks: int) -> Needed:
    """For ``sequences`` at once in the heaviest phase of a run of ``ranks`` processes; the precision is settled."""
    engine, net, whole = config.engine, config.model, 4.0 * parameters
    zero = 3 if engine.name == "fsdp" else engine.zero_stage if engine.name == "deepspeed" else 0
    cut_at = (3, 2, 1)  # the stages of ZeRO from which weights, gradients and averages are cut
    weights, gradients, averages = (whole / ranks if zero >= stage else whole for stage in cut_at)
    tokens = max(phase.length for phase in phases(config)) * sequences
    predictions = max(phase.length * phase.share for phase in phases(config)) * sequences
    scores = max(predictions * vocab_size, min(tokens * vocab_size, MOST_CAUSAL) if config.causal_rows else 0)
    activations = tokens * net.hidden * net.layers * ACTIVATION_BYTES[engine.precision]
    averages *= 3 if config.optimizer.ema else 2
    return Needed(weights, gradients, averages, activations, scores * SCORE_BYTES)


def memory_of(device: torch.device) -> tuple[int, int]:
    """Bytes that are free on a device, and all of them."""
    import psutil
    import torch

    if device.type == "cpu":
        host = psutil.virtual_memory()
        return host.available, host.total
    if device.type == "mps":
        most = torch.mps.recommended_max_memory()
        return most - torch.mps.driver_allocated_memory(), most
    return torch.accelerator.get_memory_info(device)


def describe_memory(needed: Needed, sequences: int, device: torch.device) -> str:
    """One line for the log."""
    free, total = memory_of(device)
    parts = ", ".join(f"{name} {size / GIB:.2f}" for name, size in needed._asdict().items())
    return (
        f"memory for {sequences} sequences at once: about {sum(needed) / GIB:.2f} GiB ({parts}) of "
        f"{free / GIB:.1f} free of {total / GIB:.1f} on {device.type}"
    )


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error of torch or Python means that memory did not suffice."""
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in NO_MEMORY)
    )


@contextmanager
def explained_memory(config: PretrainConfig, world: World, sequences: int) -> Iterator[None]:
    """Let what runs out of memory inside say what to set, as a BadInput."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise BadInput(out_of_memory(config, world, sequences)) from error


def out_of_memory(config: PretrainConfig, world: World, sequences: int) -> str:
    """What to say of it, and what to set."""
    there = memory_of(world.device)[1] / GIB
    length = max(phase.length for phase in phases(config))
    if sequences > 1:
        advice = f"set pretrain.engine.micro_batch={sequences // 2}; the batches of a step stay the same"
    elif world.size > 1 and config.engine.name not in ("fsdp", "deepspeed"):
        advice = "set pretrain.engine.name=fsdp, which cuts the model over the processes, or take a smaller model"
    elif config.engine.name == "deepspeed" and config.engine.zero_stage < 3 and world.size > 1:
        advice = f"set pretrain.engine.zero_stage={config.engine.zero_stage + 1}, or take a smaller model"
    else:
        advice = "use more devices, lower pretrain.rows.sequence_length, or take a smaller model"
    return (
        f"out of memory: a micro-batch of {sequences} x {length} tokens does not fit the {there:.1f} GiB of "
        f"{world.device}; {advice}"
    )
