"""Models are written with last states of the usual size, from which heads of tasks learn; training keeps them small.

The last norm of a ModernBERT that began by counting (``pretrain/model/contexts.py``) is about a tenth of others'. When
a model is written, a power of two moves from that norm into the matrix of the vocabulary head, and back when training
goes on from a checkpoint: every score stays as it is, bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from torch import Tensor

from pretrain.checkpoint.slices import Stored

STATES, HEAD = "final_norm.weight", "head.dense.weight"  # ends of names


def usual_scales(weights: Mapping[str, Tensor]) -> dict[str, float]:
    """What to multiply two of the weights by, by name, so that last states are about as large as other encoders'.

    None for another architecture, and where the norm is near 1.
    """
    states, head = (next((name for name in weights if name.endswith(end)), None) for end in (STATES, HEAD))
    if states is None or head is None or not (mean := float(weights[states].detach().abs().mean())) > 0:
        return {}
    size = 2.0 ** round(math.log2(mean))
    return {} if size == 1 else {states: 1 / size, head: size}


def scaled(weights: Mapping[str, Tensor], scales: Mapping[str, float]) -> Mapping[str, Tensor]:
    """The same weights but for those that ``scales`` names; what is stored stays on the disk."""
    if isinstance(weights, Stored):
        return weights.scaled(scales)
    return {**weights, **{name: weights[name] * scale for name, scale in scales.items()}}


def with_usual_states(weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """The weights of a finished model."""
    return scaled(weights, usual_scales(weights))
