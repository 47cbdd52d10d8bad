"""The memory that training needs, computed before the first step, and the advice if it is not enough.

Counted are 16 bytes per parameter (sharded with ZeRO; fp16 as in arXiv 1910.02054), activations, the scores at the
predictions, and buffers. On CPUs, activations are the tensors that torch keeps for the backward pass, and the sum is
within 25 % of the measured peak (benchmarks/records/pretraining/cpu-memory.csv). On GPUs, they follow arXiv 2205.05198
(equation 2, without attention matrices), and the sum has not been measured.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from corpus.documents.errors import BadInput
from pretrain.config import PretrainConfig
from pretrain.model import sizes
from pretrain.model.sizes import MAX_CAUSAL_SCORES
from pretrain.schedule import phases

if TYPE_CHECKING:
    import torch

    from pretrain.engine.world import World

GIB = 1 << 30
# bytes per parameter, float32: the model alone, a checkpoint (with Adam's two moments), and training (with gradients)
MODEL_BYTES, CHECKPOINT_BYTES, TRAINING_BYTES = 4, 12, 16
ACTIVATION_BYTES = {"fp32": 68, "bf16": 42, "fp16": 34}  # per token, layer and hidden unit; autocast copies inputs
SCORE_BYTES = 8  # per prediction and piece: the score and its share
# of activations and scores on a CPU, measured: freed blocks that glibc keeps, but that do not fit the next tensors
HOLES = 0.2
BUCKET = 500_000_000  # gradients that DeepSpeed reserves buffers for from stage 1 on, for any size of model
KEEP = {-4: 0, -1: (1 << 31) - 1, -2: 1 << 26}  # glibc's M_MMAP_MAX, M_TRIM_THRESHOLD and M_TOP_PAD
NO_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")  # messages of torch on GPUs and CPUs


class Needed(NamedTuple):
    """Bytes on one device."""

    weights: float
    gradients: float
    moments: float
    activations: float
    scores: float
    buffers: float


def needed_memory(
    config: PretrainConfig, vocab_size: int, parameters: int, sequences: int, ranks: int, *, is_cpu: bool = False
) -> Needed:
    """For ``sequences`` at once in the heaviest phase of a run of ``ranks`` processes, in a resolved precision."""
    engine, model = config.engine, config.model
    stage = engine.zero_stage if engine.name == "deepspeed" else 0
    precision = "bf16" if engine.precision == "fp16" and not stage else engine.precision  # both by autocast
    full = (2.0 if precision == "fp16" else 4.0) * parameters
    # ZeRO shards moments from stage 1 on, gradients from 2, weights from 3
    weights, gradients = (full / ranks if is_sharded else full for is_sharded in (stage == 3, stage > 1))
    weights += 4 * parameters / ranks if stage else 0  # DeepSpeed updates a float32 copy of its part of the weights
    moments = 8.0 * parameters / (ranks if stage else 1)
    parts = [(phase, min(sequences, phase.config.global_batch)) for phase in phases(config)]
    tokens = max(phase.length * rows for phase, rows in parts)
    predictions = max(phase.length * phase.share * rows for phase, rows in parts)
    score_count = min(tokens * vocab_size, MAX_CAUSAL_SCORES) if config.is_causal else predictions * vocab_size
    scores = score_count * SCORE_BYTES
    activations = 1.0 * tokens * model.hidden * model.layers * ACTIVATION_BYTES[precision]
    copies = 2.0 * parameters if precision == "bf16" else 0.0  # of each matrix, made by autocast
    buffers = copies + (BUCKET * full / parameters if stage else 0)
    if is_cpu:
        activations, backward = (tokens * size for size in cpu_activations(config))
        at_peak = activations + max(scores, backward)  # scores are freed before the backward pass of the last layer
        buffers += at_peak - activations - scores + HOLES * at_peak
    return Needed(weights, gradients, moments, activations, scores, buffers)


def cpu_activations(config: PretrainConfig) -> tuple[float, float]:
    """Bytes per token of all layers, kept from the forward pass, and of one layer in the backward pass; eager code.

    Dropout masks have the type of their input on CPUs. Attention with dropout or in short rows is computed matrix by
    matrix in float32, and keeps its heads x length shares, with dropout also their mask and product.
    """
    model, length = config.model, max(phase.length for phase in phases(config))
    size = 2 if config.engine.precision == "bf16" else 4  # of the inputs of a matrix
    is_modern, is_packed = model.architecture == "modernbert", config.rows.packing == "documents"
    masks = int(model.dropout > 0)
    drops_shares = masks and not is_modern and not is_packed  # the others have no attention dropout
    # inputs of the norms; inputs of three matrices, queries, keys and values; packed: the segments joined
    hidden = 2 * 4 + size * (6 + is_packed + masks * (1 if is_modern else 2))
    if size == 2 and model.architecture in ("bert", "roberta"):
        hidden += 2 * size  # autocast copies the same input for queries, keys and values
    inner = size * (4 + masks if is_modern else 2)  # before and after GELU; gated: value, gate, product and mask
    shares = 0
    if drops_shares or length <= sizes.SHORT_ROW:
        hidden += 3 * (4 - size)
        shares = 4 * model.heads * length * (3 if drops_shares else 1)
    # the last layer is computed at the predictions, but its input, keys and values at all tokens
    share = max(phase.share for phase in phases(config))
    layers, last = (model.layers, 0) if config.is_causal else (model.layers - 1 + share, 3 * size * model.hidden)
    activations = layers * (hidden * model.hidden + inner * model.intermediate + shares) + last
    window = 3 * sizes.LOCAL_WINDOW // 2
    if is_modern and length > window:  # keys and values with those of both neighbors, and their mask
        local = model.layers - -(-model.layers // sizes.GLOBAL_EVERY)
        activations += local * size * (5 * model.hidden + window)
    embeddings = 3 * 4 * model.hidden  # their sum, the norm and its mask
    return activations + embeddings, 2 * (shares / 3 if drops_shares else 0) + 2 * size * model.intermediate


def memory_of(device: torch.device) -> tuple[int, int]:
    """Free bytes and all bytes of a device."""
    import psutil
    import torch

    if device.type == "cpu":
        host = psutil.virtual_memory()
        return host.available, host.total
    if device.type == "mps":
        total = torch.mps.recommended_max_memory()
        return total - torch.mps.driver_allocated_memory(), total
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
    """Make glibc keep up to 2 GiB of freed tensors for the next step, so that no page must be cleared again."""
    with suppress(AttributeError, OSError, TypeError):  # TypeError: on Windows
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, value in KEEP.items():
            mallopt(parameter, value)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error of torch or Python means that there was not enough memory."""
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in NO_MEMORY)
    )


@contextmanager
def explained_memory(config: PretrainConfig, world: World, sequences: int) -> Iterator[None]:
    """Turn an out-of-memory error inside the block into a BadInput with advice."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise BadInput(out_of_memory(config, world, sequences)) from error


def out_of_memory(config: PretrainConfig, world: World, sequences: int) -> str:
    """The error message, with the setting to change."""
    total = memory_of(world.device)[1] / GIB
    length = max(phase.length for phase in phases(config))
    if sequences > 1:
        advice = f"set pretrain.engine.micro_batch={sequences // 2}; the batches of a step stay the same"
    elif world.size > 1 and config.engine.name != "deepspeed":
        advice = "set pretrain.engine.name=deepspeed, which shards the optimizer, or use a smaller model"
    elif config.engine.name == "deepspeed" and config.engine.zero_stage < 3 and world.size > 1:
        advice = f"set pretrain.engine.zero_stage={config.engine.zero_stage + 1}, or use a smaller model"
    else:
        advice = "use more devices, lower pretrain.rows.sequence_length, or use a smaller model"
    return (
        f"out of memory: a micro-batch of {sequences} x {length} tokens does not fit the {total:.1f} GiB of "
        f"{world.device}; {advice}"
    )
