"""Two ways to train a contestant at a pace: the loop and the engine of pretraining, and transformers' Trainer.

The Trainer gets the stock model, rows of the same store and its own collator, which masks pieces. Its rate is that of
our schedule, so that it fits the budget, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset
from transformers import PreTrainedModel, TrainerCallback

from benchmarks.pretrain import Given, as_examples
from benchmarks.rivals import train_with_trainer
from benchmarks.speedrun.arena import score
from benchmarks.speedrun.contestants import Side
from benchmarks.speedrun.pace import Pace
from pretrain.batching.batches import Batch, TrainingBatches
from pretrain.config import PretrainConfig
from pretrain.engine.optimizer import fit_micro_batch
from pretrain.engine.start import start_engine
from pretrain.engine.world import World
from pretrain.interruption import StopRequest
from pretrain.loop import Monitors, train
from pretrain.model.last_layer import pick
from pretrain.model.module import PretrainingModule, loss_and_hits
from pretrain.schedule import learning_rate


class Course(NamedTuple):
    """What is trained on, and the rows that all are measured on, on the device."""

    given: Given
    tokenizer: Path
    world: World
    held_out: list[tuple[float, Batch]]

    def batches(self, config: PretrainConfig) -> TrainingBatches:
        return TrainingBatches(self.given.split, self.given.pieces, config, 0, 1, fit_micro_batch(config, 1))


Weights = dict[str, Tensor]


class _Pause(Exception):
    """The loop is left, to go on by another plan or not at all."""


def train_ours(course: Course, network: PreTrainedModel, pace: Pace) -> Weights:
    """Train until the pace is over, from where it is; returns the weights that become the model, on the CPU."""
    engine = start_engine(pace.config, PretrainingModule(network), course.world)

    def sums_of(batch: Batch) -> tuple[Tensor, Tensor]:
        sums = engine(*batch)
        return sums.mlm_loss, sums.mlm_hits

    def measure() -> dict[str, float]:
        return _measured(engine.module, course, sums_of)

    engine.module.train()
    pace.ready(measure, engine)
    watch = _watch(pace)
    while not pace.is_over:
        with suppress(_Pause):
            train(engine, course.batches(pace.config), watch, pace.config, course.world, pace.step + 1)
    return engine.state(keep=True)[0]


def _watch(pace: Pace) -> Monitors:
    """What the loop reports to: the tokens of each step go to the pace."""
    seen: list[int] = []

    def add(sums: Any, predictions: int, tokens: int, others: int = 0) -> None:
        seen.append(tokens)

    def due(step: int) -> bool:  # the loop asks after every step
        tokens = sum(seen)
        seen.clear()
        if pace.after_step(tokens):
            raise _Pause
        return False

    meter = SimpleNamespace(add=add, end_step=lambda *_: None, due=due, mark=lambda: None)
    checkpoints = SimpleNamespace(due=lambda step: False, has_failed=False)
    return Monitors(cast(Any, meter), cast(Any, checkpoints), dict, StopRequest())


def train_theirs(course: Course, network: PreTrainedModel, pace: Pace) -> Weights:
    """The same with transformers' Trainer, always from the beginning."""
    config, device = pace.config, course.world.device
    network.to(cast(Any, device))

    def sums_of(batch: Batch) -> tuple[Tensor, Tensor]:
        assert batch.positions_BM is not None
        with torch.autocast(device.type, torch.bfloat16, enabled=config.engine.precision == "bf16"):
            states = network.base_model(input_ids=batch.ids_BL).last_hidden_state
            scores_BMV = cast(Any, network).lm_head(pick(states, batch.positions_BM))
        return loss_and_hits(scores_BMV.flatten(0, 1), batch.targets_BM.flatten())

    pace.ready(lambda: _measured(network, course, sums_of))
    steps = _Steps(pace, config.global_batch * config.rows.sequence_length)
    with TemporaryDirectory(prefix="malmoi-bench-") as out:
        train_with_trainer(network, _TrainingRows(course.given), config, course.tokenizer, Path(out), [steps])
    return {name: p.detach().cpu() for name, p in network.named_parameters()}


SIDES: dict[Side, Callable[[Course, PreTrainedModel, Pace], Weights]] = {
    "malmoi": train_ours,
    "trainer": train_theirs,
}


def _measured(
    module: torch.nn.Module, course: Course, sums_of: Callable[[Batch], tuple[Tensor, Tensor]]
) -> dict[str, float]:
    module.eval()
    try:
        return score(course.held_out, sums_of)
    finally:
        module.train()


class _Steps(TrainerCallback):
    """Sets the rate before each step of the Trainer and counts it after; ``tokens`` of a step."""

    def __init__(self, pace: Pace, tokens: int) -> None:
        self._pace, self._tokens = pace, tokens

    def on_step_begin(self, args: Any, state: Any, control: Any, optimizer: Any = None, **others: Any) -> None:
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(self._pace.config, self._pace.step + 1)

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self._pace.after_step(self._tokens)
        control.should_training_stop = self._pace.is_over


class _TrainingRows(Dataset[dict[str, Any]]):
    """All rows of an epoch, a batch of them at once; the Trainer shuffles them itself."""

    def __init__(self, given: Given) -> None:
        self._given = given

    def __len__(self) -> int:
        return self._given.split.training.count(0)

    def __getitem__(self, number: int) -> dict[str, Any]:
        return self.__getitems__([number])[0]

    def __getitems__(self, numbers: Sequence[int]) -> list[dict[str, Any]]:
        rows_B = np.array(numbers, np.int64)
        return as_examples(self._given.split.training.gather(np.zeros_like(rows_B), rows_B).ids_BL, self._given.pieces)
