"""The memory that training needs, counted before the first step, and one sentence where it does not suffice.

Counted are 16 bytes a parameter (float32 weights, gradients and Adam's two averages; cut over the processes where the
engine does so; in fp16 DeepSpeed's two, two, and twelve of exact weights and averages, as in arXiv 1910.02054), what
the backward pass needs of each layer (after arXiv 2205.05198, equation 2, without the products of attention, which its
kernels do not keep), the scores over the vocabulary at the predictions, and what engines hold besides. It tells what
fits from what does not, not 10 GiB from 12. On processors a step keeps what it freed for the next one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from corpus.documents.errors import BadInput
from pretrain.config import PretrainConfig
from pretrain.schedule import phases

if TYPE_CHECKING:
    import torch

    from pretrain.engine.world import World

GIB = 1 << 30
ACTIVATION_BYTES = {"fp32": 68, "bf16": 42, "fp16": 34}  # per token, layer and hidden unit; autocast copies inputs
SCORE_BYTES = 8  # per prediction and piece: the scores and their shares
MOST_CAUSAL = 1 << 27  # scores at once where every token predicts (pretrain.model.module)
BUCKET = 500_000_000  # gradients that DeepSpeed keeps room for from stage 1 on, however small the model is
KEEP = {-4: 0, -1: (1 << 31) - 1, -2: 1 << 26}  # glibc's M_MMAP_MAX, M_TRIM_THRESHOLD and M_TOP_PAD
NO_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")  # torch's words on GPUs and CPUs


class Needed(NamedTuple):
    """Bytes on one device."""

    weights: float
    gradients: float
    averages: float
    activations: float
    scores: float
    buffers: float


def needed_memory(config: PretrainConfig, vocab_size: int, parameters: int, sequences: int, ranks: int) -> Needed:
    """For ``sequences`` at once in the heaviest phase of a run of ``ranks`` processes; the precision is settled."""
    engine, net, is_fsdp = config.engine, config.model, config.engine.name == "fsdp"
    zero = 3 if is_fsdp else engine.zero_stage if engine.name == "deepspeed" else 0
    is_deepspeed = zero > 0 and not is_fsdp
    whole = (2.0 if engine.precision == "fp16" and is_deepspeed else 4.0) * parameters
    # ZeRO cuts averages from stage 1 on, gradients from 2, weights from 3; FSDP sums whole gradients up until the last
    # micro-batch of a step, and DeepSpeed updates a float32 copy of its part of the weights
    sums_up = is_fsdp and config.global_batch // ranks > sequences
    weights, gradients = (whole / ranks if is_cut else whole for is_cut in (zero == 3, zero > 1 and not sums_up))
    weights += 4 * parameters / ranks if is_deepspeed and not engine.offload else 0
    averages = (12.0 if config.optimizer.ema else 8.0) * parameters / (ranks if zero else 1)
    tokens = max(phase.length for phase in phases(config)) * sequences
    predictions = max(phase.length * phase.share for phase in phases(config)) * sequences
    scores = max(predictions * vocab_size, min(tokens * vocab_size, MOST_CAUSAL) if config.causal_rows else 0)
    activations = tokens * net.hidden * net.layers * ACTIVATION_BYTES[engine.precision]
    copies = 2.0 * parameters if engine.precision == "bf16" else 0.0  # autocast's, of each matrix, for a micro-batch
    buffers = copies + (BUCKET * whole / parameters if is_deepspeed else 0)
    return Needed(weights, gradients, 0 if engine.offload else averages, activations, scores * SCORE_BYTES, buffers)


def host_memory_of_offload(parameters: int, ranks: int) -> float:
    """Bytes of host memory a process where the optimizer works there: exact weights, gradients, both averages."""
    return 16.0 * parameters / ranks


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


def keep_freed_memory() -> None:
    """Let glibc keep large tensors that were freed, up to 2 GiB, for the next step of the same sizes.

    It gives them back to the system, which clears every page that is asked for again. The most that a process holds
    stays the same. Other C libraries stay as they are.
    """
    with suppress(AttributeError, OSError, TypeError):  # TypeError: Windows has no library of the process itself
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, value in KEEP.items():
            mallopt(parameter, value)


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
