"""Weights averaged over a training, scored and kept in place of the last ones; torch's ``AveragedModel`` does the sums.

SWA (Izmailov et al. 2018) is the mean of the weights after each epoch, while the rate stays constant, so that each of
them is somewhere else. EMA is a moving mean of the weights after each step under any schedule. The price is a second
copy of the trained weights. No network here has batch norm, whose statistics would have to be made again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from transformers import TrainerCallback

from finetune.task import Hyperparameters


class Averaging(TrainerCallback):
    """The average of what is trained; it stands in the model only inside ``shown`` and after ``settle``."""

    def __init__(self, settings: Hyperparameters, steps_per_epoch: int) -> None:
        self.is_due_each_step = settings.average == "ema"
        self.function = get_ema_multi_avg_fn(settings.ema_decay) if self.is_due_each_step else None
        self.after = settings.average_after * steps_per_epoch
        self.steps_per_epoch = steps_per_epoch

    @property
    def count(self) -> int:
        """So many weights were averaged."""
        return int(self.mean.n_averaged)

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **named: Any) -> None:
        self.trained = nn.ParameterList(x for x in model.parameters() if x.requires_grad)
        self.mean = AveragedModel(self.trained, multi_avg_fn=self.function)

    def on_step_end(self, args: Any, state: Any, control: Any, **named: Any) -> None:
        is_due = self.is_due_each_step or state.global_step % self.steps_per_epoch == 0
        if is_due and state.global_step > self.after:
            self.mean.update_parameters(self.trained)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """The average in the model, and what was trained again afterwards."""
        kept = [weight.detach().clone() for weight in self.trained]
        self.settle()
        try:
            yield
        finally:
            self._write(kept)

    def settle(self) -> int:
        """The average in the model, for good; returns ``count``."""
        assert self.count, "what is not averaged yet is a copy of the first weights"
        self._write(list(self.mean.module.parameters()))
        return self.count

    @torch.no_grad()
    def _write(self, weights: list[torch.Tensor]) -> None:
        for weight, value in zip(self.trained, weights, strict=True):
            weight.copy_(value)
