"""Stochastic weight averaging (SWA, Izmailov et al. 2018): the mean of the weights after each epoch but the first.

The averaged weights are scored and saved. The learning rate stays constant while weights are averaged, so that they
differ. The cost is a second copy of the trained weights. No network here has batch norm, so no statistics need an
update. torch's ``AveragedModel`` computes the mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel
from transformers import TrainerCallback

START_EPOCHS = 1  # epochs before the first that is averaged


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
