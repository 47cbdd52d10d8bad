"""Stochastic weight averaging (SWA), and learning rates by step and by layer; the published training has neither.

SWA (Izmailov et al. 2018): the mean of the weights after each epoch but the first is scored and saved. The learning
rate stays constant while weights are averaged, so that they differ. The cost is a second copy of the trained weights.
No network here has batch norm, so no statistics need an update. torch's ``AveragedModel`` computes the mean.

With layer decay d, the head has the rate of the step, layer k of n d^(n-k) of it, the embeddings d^n. Lower layers hold
general features and should move less (Howard and Ruder 2018; Sun et al. 2019 for BERT).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel
from transformers import TrainerCallback

from finetune.config import Hyperparameters
from finetune.encoder.module import find_encoder

START_EPOCHS = 1  # epochs before the first that is averaged
CYCLES_PER_EPOCH = 5  # times that the cosine goes down or up
LOWEST = 0.1  # of the rate, where the cosine turns


class Averaging(TrainerCallback):
    """The average of the trained weights; it is in the model only inside ``averaged_weights`` and after ``finish``."""

    def __init__(self, steps_per_epoch: int) -> None:
        self.steps_per_epoch = steps_per_epoch

    @property
    def count(self) -> int:
        """Number of averaged weights."""
        return int(self.mean.n_averaged)

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **named: Any) -> None:
        self.trained = nn.ParameterList(x for x in model.parameters() if x.requires_grad)
        self.mean = AveragedModel(self.trained)

    def on_step_end(self, args: Any, state: Any, control: Any, **named: Any) -> None:
        epochs, rest = divmod(state.global_step, self.steps_per_epoch)
        if not rest and epochs > START_EPOCHS:
            self.mean.update_parameters(self.trained)

    @contextmanager
    def averaged_weights(self) -> Iterator[None]:
        """Put the average into the model, and restore the trained weights afterwards."""
        trained = [weight.detach().clone() for weight in self.trained]
        self.finish()
        try:
            yield
        finally:
            self._write(trained)

    def finish(self) -> int:
        """Put the average into the model for good; returns ``count``."""
        assert self.count, "nothing was averaged yet"
        self._write(list(self.mean.module.parameters()))
        return self.count

    @torch.no_grad()
    def _write(self, weights: list[torch.Tensor]) -> None:
        for weight, value in zip(self.trained, weights, strict=True):
            weight.copy_(value)


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
    lists = [part for part in encoder.modules() if isinstance(part, nn.ModuleList)]
    # the lowest layer first; ALBERT has one group, whose layers share their weights
    layers = next((part for part in lists if len(part) == encoder.config.num_hidden_layers), lists[0])
    depths = {weight: number for number, layer in enumerate(layers, 1) for weight in layer.parameters()}
    embeddings = {w for part in encoder.modules() if isinstance(part, nn.Embedding) for w in part.parameters()}
    depth = 0
    for weight in encoder.parameters():
        depth = max(depth, depths.get(weight, 0))
        depths.setdefault(weight, len(layers) if depth and weight not in embeddings else 0)
    return depths, len(layers)
