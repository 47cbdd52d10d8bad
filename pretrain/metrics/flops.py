"""Floating-point operations (FLOP) to train on one token.

Counted are the matrix products of forward and backward pass (three times the forward pass). The vocabulary head and the
last layer without its keys and values count on the predicted positions only (with isolated documents, the last layer
without its attention); local attention counts the tokens in its window; the sentence-pair head (below 0.1 %), norms and
activations count nothing. This is the useful work of PaLM (arXiv 2204.02311, appendix B). As there, a causal token
counts as if it attended to its full row, twice what it does. Peaks are in ``pretrain.metrics.device_speed``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pretrain.batching.masking import most_predictions
from pretrain.config import PretrainConfig
from pretrain.model import sizes
from pretrain.schedule import of_phase

if TYPE_CHECKING:
    from pretrain.batching.batches import TrainingBatches

# name without maker and brand: TFLOP/s in fp32 (as TF32, but where there are no tensor cores for it), in fp16 and in
# bf16 on tensor cores; None where there are none
PEAK_TFLOPS: dict[str, tuple[float, float, float | None]] = {
    r"V100-SXM2-\d+GB": (15.7, 125.0, None),
    r"V100-PCIE-\d+GB": (14.0, 112.0, None),
    r"T4": (8.1, 65.0, None),
    r"A[18]00[- ](SXM4-\d+GB|PCIE-\d+GB|80GB PCIe)": (156.0, 312.0, 312.0),
    r"A10": (62.5, 125.0, 125.0),
    r"L4": (60.0, 121.0, 121.0),
    r"L40S": (183.0, 362.0, 362.0),
    r"H100 80GB HBM3|H800( 80GB HBM3)?": (494.5, 989.5, 989.5),  # SXM
    r"H[18]00 PCIe": (378.0, 756.5, 756.5),
    r"H100 NVL": (417.5, 835.5, 835.5),
    r"GH200 \d+GB?( HBM3e?)?": (494.5, 989.5, 989.5),
    r"H20(-3e)?": (74.0, 148.0, 148.0),
    r"H200": (494.5, 989.5, 989.5),
    r"H200 NVL": (417.5, 835.5, 835.5),
    r"B[23]00( SXM6 AC)?": (1100.0, 2250.0, 2250.0),
    r"RTX 3090": (35.6, 71.0, 71.0),  # sums kept in fp32, as torch does
    r"RTX 4090": (82.6, 165.2, 165.2),
    r"RTX 5090": (104.8, 209.5, 209.5),
}
SAMPLED_ROWS = 256
PRECISIONS = ("fp32", "fp16", "bf16")


def flops_per_token(config: PretrainConfig, vocab_size: int, lengths: NDArray[np.int64] | None = None) -> float:
    """Operations to train on one token; ``lengths``: segment lengths of rows, None: each row is one segment."""
    model, length = config.model, config.rows.sequence_length
    predicted = 1.0 if config.is_causal else most_predictions(length, config.rows.masking.share) / length
    hidden, is_modern, is_gpt = model.hidden, model.architecture == "modernbert", model.architecture == "gpt"
    is_isolated = config.rows.packing == "documents"
    # keys and values; also queries with the joint matrix of ModernBERT or with isolated documents
    on_all = (3 if is_modern or is_isolated else 2) * hidden**2
    rest = (
        4 * hidden**2 - on_all + (3 if is_modern else 2) * hidden * model.intermediate
    )  # gated units have three matrices
    lengths = np.array([length]) if lengths is None else lengths
    total = 6 * ((0 if is_gpt else hidden**2) + hidden * vocab_size) * predicted
    for layer in range(model.layers):
        is_narrow = layer == model.layers - 1 and not is_gpt  # queries at the predictions, and at [CLS] for pairs
        queries = predicted + model.nsp / length if is_narrow else 1
        reach = sizes.LOCAL_WINDOW // 2 if is_modern and layer % sizes.GLOBAL_EVERY else None
        attention = 12 * attended_length(lengths, reach) * hidden
        total += 6 * (on_all + queries * rest) + attention * (1 if is_isolated else queries)
    return total


def attended_length(lengths: NDArray[np.int64], reach: int | None = None) -> float:
    """Mean number of tokens that a token attends to in segments of these lengths (zeros: no segment).

    With ``reach``, only tokens up to that distance count.
    """
    sizes = lengths[lengths > 0].astype(float)
    reaches = sizes - 1 if reach is None else np.minimum(reach, sizes - 1)
    return float((sizes * (2 * reaches + 1) - reaches * (reaches + 1)).sum() / sizes.sum())


def flops_by_phase(batches: TrainingBatches, config: PretrainConfig, vocab_size: int) -> list[float]:
    """``flops_per_token`` of each phase of a run; segment lengths are taken from its first rows."""
    flops = []
    for phase in batches.phases:
        source = batches.source_of(phase)
        some = np.arange(min(SAMPLED_ROWS, source.count(0)))
        lengths_BS = source.gather(np.zeros_like(some), some).lengths_BS
        flops.append(flops_per_token(of_phase(config, phase), vocab_size, lengths_BS))
    return flops


def peak_flops(device_name: str, precision: str) -> float | None:
    """Dense peak in FLOP/s of a device, as ``torch.cuda.get_device_name`` calls it (fp32 as TF32).

    None where it is not known, as for CPUs and slices of a GPU.
    """
    name = re.sub(r"^(NVIDIA|Tesla|GeForce| )+", "", device_name)
    peaks = next((peaks for pattern, peaks in PEAK_TFLOPS.items() if re.fullmatch(pattern, name)), (None,) * 3)
    peak = peaks[PRECISIONS.index(precision)]
    return None if peak is None else peak * 1e12
