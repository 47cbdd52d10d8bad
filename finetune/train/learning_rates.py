"""The learning rate by step and by layer, if it is not the published one (linear, equal for all weights).

With layer decay d, the head has the rate of the step, layer k of n d^(n-k) of it, the embeddings d^n. Lower layers hold
general features and should move less (Howard and Ruder 2018; Sun et al. 2019 for BERT).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from torch import nn

from finetune.encoder.module import find_encoder
from finetune.hyperparameters import Hyperparameters
from finetune.train.averaging import START_EPOCHS

CYCLES_PER_EPOCH = 5  # times that the cosine goes down or up
LOWEST = 0.1  # of the rate, where the cosine turns


def rate_at(step: int, settings: Hyperparameters, warmup: float, steps: float) -> float:
    """The learning rate before step ``step`` (from 0) of ``steps``, in units of ``lr``: warmup, then linear decay or a
    cosine as in torch's ``CosineAnnealingLR``; constant while SWA averages."""
    epoch = steps / settings.epochs
    if settings.average == "swa" and step >= START_EPOCHS * epoch:
        return 1.0 if settings.swa_lr is None else settings.swa_lr / settings.lr
    if step < warmup:
        return step / warmup
    if settings.schedule == "linear":
        return max(0.0, (steps - step) / max(1.0, steps - warmup))
    turns = math.cos(math.pi * CYCLES_PER_EPOCH * step / epoch)
    return LOWEST + (1 - LOWEST) * (1 + turns) / 2


def decay_by_layer(
    groups: Sequence[dict[str, Any]], model: nn.Module, settings: Hyperparameters
) -> list[dict[str, Any]]:
    """The parameter groups of an optimizer, divided by the learning rate of each layer."""
    depths, top = find_depths(model)
    parted = []
    for group in groups:
        by_depth = defaultdict(list)
        for weight in group["params"]:
            by_depth[depths.get(weight, top + 1)].append(weight)
        for depth, weights in sorted(by_depth.items()):
            factor = 1.0 if depth > top else settings.layer_decay ** (top - depth)
            parted.append({**group, "params": weights, "lr": group["lr"] * factor})
    return parted


def find_depths(model: nn.Module) -> tuple[dict[nn.Parameter, int], int]:
    """The depth of each weight of the encoder, and of its top layer: 0 for embeddings and everything before the layers;
    weights after the layers (pooler, last norm) have the depth of the top layer."""
    encoder = find_encoder(model)
    layers = find_layers(encoder)
    depths = {weight: number for number, layer in enumerate(layers, 1) for weight in layer.parameters()}
    embeddings = {
        weight for part in encoder.modules() if isinstance(part, nn.Embedding) for weight in part.parameters()
    }
    depth = 0
    for weight in encoder.parameters():
        depth = max(depth, depths.get(weight, 0))
        depths.setdefault(weight, len(layers) if depth and weight not in embeddings else 0)
    return depths, len(layers)


def find_layers(encoder: Any) -> nn.ModuleList:
    """The layers of an encoder, the lowest first; ALBERT has one group, whose layers share their weights."""
    lists = [part for part in encoder.modules() if isinstance(part, nn.ModuleList)]
    return next((part for part in lists if len(part) == encoder.config.num_hidden_layers), lists[0])
