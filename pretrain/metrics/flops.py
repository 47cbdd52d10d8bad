"""Floating-point operations (FLOP) to train on one token: matrix products of forward and backward pass (3 x forward).

The vocabulary head and the last layer without its keys and values count on the predicted positions only; local
attention counts the tokens in its window; norms, activations and the sentence-pair head count nothing. As in PaLM
(arXiv 2204.02311, appendix B), a causal token counts as if it attended to its full row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pretrain.batching.masking import max_predictions
from pretrain.config import PretrainConfig
from pretrain.model import sizes

if TYPE_CHECKING:
    from pretrain.batching.batches import TrainingBatches

SAMPLED_ROWS = 256


def flops_per_token(config: PretrainConfig, vocab_size: int, lengths: NDArray[np.int64] | None = None) -> float:
    """Operations to train on one token; ``lengths``: segment lengths of rows, None: each row is one segment."""
    model, length = config.model, config.rows.sequence_length
    predicted = 1.0 if config.is_causal else max_predictions(length, config.rows.masking.share) / length
    hidden, is_modern, is_gpt = model.hidden, model.architecture == "modernbert", model.architecture == "gpt"
    is_isolated = config.rows.packing == "documents"
    # keys and values; also queries with the joint matrix of ModernBERT or with isolated documents
    on_all = (3 if is_modern or is_isolated else 2) * hidden**2
    rest = 4 * hidden**2 - on_all + (3 if is_modern else 2) * hidden * model.intermediate  # gated: three matrices
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
        mixture = batches.mixture_of(phase)
        lengths_BS = mixture.gather(mixture.locate(np.arange(SAMPLED_ROWS))).lengths_BS
        own = phase.config.model_copy(update={"model": config.model})
        flops.append(flops_per_token(own, vocab_size, lengths_BS))
    return flops
