"""Floating-point operations of a token in training, and what a device could do at best: the two halves of the MFU.

Counted are the matrix products of forward and backward pass (three times the forward pass), the vocabulary head and
all of the last layer but keys and values on the predicted positions only (where documents are isolated, all but its
attention), of local attention what a token may see, nothing for the sentence-pair head (below 0.1 %), norms and
activations: the useful work, after PaLM (arXiv 2204.02311, appendix B). As there, a causal token counts as if it saw
its whole row, twice what it sees; hybrid rows cost their mean. Peaks are the dense rates of NVIDIA's datasheets, half
of those printed "with sparsity".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pretrain.batching.masking import most_predictions
from pretrain.config import PretrainConfig
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
    """Operations to train on one token; ``lengths`` are those of the segments of rows, None: each row is one."""
    causal = config.causal_rows / config.global_batch
    masked_share = (
        most_predictions(config.rows.sequence_length, config.rows.masking.share) / config.rows.sequence_length
    )
    of_kinds = ((causal, 1.0), (1 - causal, masked_share))
    return sum(share * _flops(config, vocab_size, lengths, predicted) for share, predicted in of_kinds if share)


def _flops(config: PretrainConfig, vocab_size: int, lengths: NDArray[np.int64] | None, predicted: float) -> float:
    model, length = config.model, config.rows.sequence_length
    hidden, is_modern, is_gpt = model.hidden, model.architecture == "modernbert", model.architecture == "gpt"
    is_isolated = config.rows.packing == "documents"
    # keys and values; queries, too, by ModernBERT's one matrix or where documents are isolated and all tokens ask
    on_all = (3 if is_modern or is_isolated else 2) * hidden**2
    rest = 4 * hidden**2 - on_all + (3 if is_modern else 2) * hidden * model.intermediate  # gated units have three
    lengths = np.array([length]) if lengths is None else lengths
    total = 6 * ((0 if is_gpt else hidden**2) + hidden * vocab_size) * predicted
    for layer in range(model.layers):
        is_narrow = layer == model.layers - 1 and not is_gpt  # it asks at the predictions, and at [CLS] for pairs
        asking = predicted + model.nsp / length if is_narrow else 1
        reach = model.local_window // 2 if is_modern and layer % model.global_every else None
        seen = 12 * attended_length(lengths, reach) * hidden
        total += 6 * (on_all + asking * rest) + seen * (1 if is_isolated else asking)
    return total


def attended_length(lengths: NDArray[np.int64], reach: int | None = None) -> float:
    """Mean number of tokens that a token sees where segments of these lengths (zeros are none) see only themselves.

    With ``reach``, only those at most so many places away.
    """
    sizes = lengths[lengths > 0].astype(float)
    reaches = sizes - 1 if reach is None else np.minimum(reach, sizes - 1)
    return float((sizes * (2 * reaches + 1) - reaches * (reaches + 1)).sum() / sizes.sum())


def flops_by_phase(batches: TrainingBatches, config: PretrainConfig, vocab_size: int) -> list[float]:
    """``flops_per_token`` of each phase of a run; what is attended is read off its first rows."""
    found = []
    for phase in batches.phases:
        source = batches.source_of(phase)
        some = np.arange(min(SAMPLED_ROWS, source.count(0)))
        lengths_BS = source.gather(np.zeros_like(some), some).lengths_BS
        found.append(flops_per_token(of_phase(config, phase), vocab_size, lengths_BS))
    return found


def peak_flops(device_name: str, precision: str) -> float | None:
    """Dense peak in FLOP/s of a device, as ``torch.cuda.get_device_name`` calls it (fp32 as TF32).

    None where it is not known, as for CPUs and slices of a GPU.
    """
    name = re.sub(r"^(NVIDIA|Tesla|GeForce| )+", "", device_name)
    peaks = next((peaks for pattern, peaks in PEAK_TFLOPS.items() if re.fullmatch(pattern, name)), (None,) * 3)
    peak = peaks[PRECISIONS.index(precision)]
    return None if peak is None else peak * 1e12
