"""Floating-point operations of a token in training, and what a device could do at best: the two halves of the MFU.

Counted are the matrix products of forward and backward pass (three times the forward pass), the vocabulary head and
all of the last layer but keys and values on the predicted positions only (on all where documents are isolated), nothing
for the sentence-pair head (below 0.1 %), norms and activations: the useful work, after PaLM (arXiv 2204.02311,
appendix B). As there, a causal token counts as if it saw its whole row, twice what it sees. A hybrid objective costs the
mean over its rows. Peaks are the dense rates of NVIDIA's datasheets, half of those printed "with sparsity".
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from pretrain.config import PretrainConfig
from pretrain.rows.batches import TrainingBatches
from pretrain.rows.masking import most_predictions

# name without maker and brand: TFLOP/s in fp32, in fp16 and in bf16 on tensor cores; None where there are none
PEAK_TFLOPS: dict[str, tuple[float, float, float | None]] = {
    r"V100-SXM2-\d+GB": (15.7, 125.0, None),
    r"V100-PCIE-\d+GB": (14.0, 112.0, None),
    r"T4": (8.1, 65.0, None),
    r"A100[- ](SXM4-\d+GB|PCIE-\d+GB|80GB PCIe)": (19.5, 312.0, 312.0),
    r"A10": (31.2, 125.0, 125.0),
    r"L4": (30.3, 121.0, 121.0),
    r"L40S": (91.6, 362.0, 362.0),
    r"H100 80GB HBM3": (67.0, 989.5, 989.5),  # SXM
    r"H100 PCIe": (51.0, 756.5, 756.5),
    r"H100 NVL": (60.0, 835.5, 835.5),
    r"H200": (67.0, 989.5, 989.5),
    r"H200 NVL": (60.0, 835.5, 835.5),
    r"B200": (75.0, 2250.0, 2250.0),
    r"RTX 3090": (35.6, 71.0, 71.0),  # sums kept in fp32, as torch does
    r"RTX 4090": (82.6, 165.2, 165.2),
}
SAMPLED_ROWS = 256
PRECISIONS = ("fp32", "fp16", "bf16")


def flops_per_token(config: PretrainConfig, vocab_size: int, attended: float | None = None) -> float:
    """Operations to train on one token of a full row; ``attended``: see ``attended_length``, None: the whole row."""
    causal_share = config.causal_rows / config.global_batch
    of_kinds = (_flops(config, vocab_size, attended, is_causal=is_causal) for is_causal in (True, False))
    return sum(share * flops for share, flops in zip((causal_share, 1 - causal_share), of_kinds, strict=True))


def _flops(config: PretrainConfig, vocab_size: int, attended: float | None, *, is_causal: bool) -> float:
    length, hidden = config.rows.sequence_length, config.model.hidden
    predicted = 1.0 if is_causal else most_predictions(length, config.rows.masking.share) / length
    # the last layer asks at the predictions, and at [CLS] for pairs
    is_gpt = config.model.architecture == "gpt"
    is_narrow = config.rows.packing != "documents" and not is_gpt
    asking = config.model.layers - 1 + (predicted + config.model.nsp / length) if is_narrow else config.model.layers
    keys_and_values = 6 * config.model.layers * 2 * hidden**2
    the_rest = 6 * asking * (2 * hidden**2 + 2 * hidden * config.model.intermediate)
    attention = 12 * asking * (length if attended is None else attended) * hidden
    head = (0 if is_gpt else hidden**2) + hidden * vocab_size
    return keys_and_values + the_rest + attention + 6 * head * predicted


def attended_length(lengths: NDArray[np.int64]) -> float:
    """Mean number of tokens that a token sees where segments of these lengths (zeros are none) see only themselves."""
    return float((lengths.astype(float) ** 2).sum() / lengths.sum())


def flops_by_phase(batches: TrainingBatches, config: PretrainConfig, vocab_size: int) -> list[float]:
    """``flops_per_token`` of each sequence length of a run; what is attended is read off its first rows."""
    found = []
    for phase in batches.phases:
        some = np.arange(min(SAMPLED_ROWS, phase.source.count(0)))
        lengths_BS = phase.source.gather(np.zeros_like(some), some).lengths_BS
        attended = None if lengths_BS is None else attended_length(lengths_BS)
        found.append(flops_per_token(config.replaced("rows", sequence_length=phase.length), vocab_size, attended))
    return found


def peak_flops(device_name: str, precision: str) -> float | None:
    """Dense peak in FLOP/s of a device, as ``torch.cuda.get_device_name`` calls it (fp32 without TF32).

    None where it is not known, as for CPUs and slices of a GPU.
    """
    name = re.sub(r"^(NVIDIA|Tesla|GeForce| )+", "", device_name)
    peaks = next((peaks for pattern, peaks in PEAK_TFLOPS.items() if re.fullmatch(pattern, name)), (None,) * 3)
    peak = peaks[PRECISIONS.index(precision)]
    return None if peak is None else peak * 1e12
