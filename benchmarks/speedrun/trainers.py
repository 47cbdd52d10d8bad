"""Two ways to train a candidate within a budget: our loop and engine, and the Trainer of transformers.

The Trainer gets the stock model, rows of the same store and its own collator, which masks single tokens. Its learning
rate follows our schedule, so that it fits the budget.
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

from benchmarks.baselines import train_with_trainer
from benchmarks.pretrain import TrainingData, as_examples
from benchmarks.speedrun.budget import StepControl
from benchmarks.speedrun.candidates import Side
from benchmarks.speedrun.setup import score
from pretrain.batching.batches import Batch, TrainingBatches
from pretrain.config import PretrainConfig
from pretrain.engine.optimizer import fit_micro_batch
from pretrain.engine.start import start_engine
from pretrain.engine.world import World
from pretrain.interruption import StopRequest
from pretrain.loop import Monitors, train
from pretrain.model.last_layer import pick
from pretrain.model.loss import PretrainingModule, loss_and_hits
from pretrain.schedule import learning_rate


class RunContext(NamedTuple):
    """Training data and the evaluation rows, on the device."""

    data: TrainingData
    tokenizer: Path
    world: World
    held_out: list[tuple[float, Batch]]

    def batches(self, config: PretrainConfig) -> TrainingBatches:
        return TrainingBatches(self.data.split, self.data.pieces, config, 0, 1, fit_micro_batch(config, 1))


Weights = dict[str, Tensor]


class _Pause(Exception):
    """Leaves the loop, which then continues with a new plan or ends."""


def train_ours(context: RunContext, network: PreTrainedModel, control: StepControl) -> Weights:
    """Train until the budget is spent, from the current step. Returns the weights of the final model, on the CPU."""
    engine = start_engine(control.config, PretrainingModule(network), context.world)

    def sums_of(batch: Batch) -> tuple[Tensor, Tensor]:
        sums = engine(*batch)
        return sums.mlm_loss, sums.mlm_hits

    def measure() -> dict[str, float]:
        return _evaluate(engine.module, context, sums_of)

    engine.module.train()
    control.ready(measure, engine)
    watch = _watch(control)
    while not control.is_over:
        with suppress(_Pause):
            train(engine, context.batches(control.config), watch, control.config, context.world, control.step + 1)
    return engine.state(keep=True)[0]


def _watch(control: StepControl) -> Monitors:
    """Reports the tokens of each step of the loop to ``control``."""
    seen: list[int] = []

    def add(sums: Any, predictions: int, tokens: int, others: int = 0) -> None:
        seen.append(tokens)

    def due(step: int) -> bool:  # the loop asks after every step
        tokens = sum(seen)
        seen.clear()
        if control.after_step(tokens):
            raise _Pause
        return False

    meter = SimpleNamespace(add=add, end_step=lambda *_: None, due=due, record_point=lambda: None)
    checkpoints = SimpleNamespace(due=lambda step: False, has_failed=False)
    return Monitors(cast(Any, meter), cast(Any, checkpoints), dict, StopRequest())


def train_theirs(context: RunContext, network: PreTrainedModel, control: StepControl) -> Weights:
    """The same with the Trainer of transformers, always from step 1."""
    config, device = control.config, context.world.device
    network.to(cast(Any, device))

    def sums_of(batch: Batch) -> tuple[Tensor, Tensor]:
        assert batch.positions_BM is not None
        with torch.autocast(device.type, torch.bfloat16, enabled=config.engine.precision == "bf16"):
            states = network.base_model(input_ids=batch.ids_BL).last_hidden_state
            scores_BMV = cast(Any, network).lm_head(pick(states, batch.positions_BM))
        return loss_and_hits(scores_BMV.flatten(0, 1), batch.targets_BM.flatten())

    control.ready(lambda: _evaluate(network, context, sums_of))
    steps = _Steps(control, config.global_batch * config.rows.sequence_length)
    with TemporaryDirectory(prefix="malmoi-bench-") as out:
        train_with_trainer(network, _TrainingRows(context.data), config, context.tokenizer, Path(out), [steps])
    return {name: p.detach().cpu() for name, p in network.named_parameters()}


TRAINERS: dict[Side, Callable[[RunContext, PreTrainedModel, StepControl], Weights]] = {
    "malmoi": train_ours,
    "trainer": train_theirs,
}


def _evaluate(
    module: torch.nn.Module, context: RunContext, sums_of: Callable[[Batch], tuple[Tensor, Tensor]]
) -> dict[str, float]:
    module.eval()
    try:
        return score(context.held_out, sums_of)
    finally:
        module.train()


class _Steps(TrainerCallback):
    """Sets the learning rate before each step of the Trainer and counts the step; ``tokens``: of a step."""

    def __init__(self, control: StepControl, tokens: int) -> None:
        self._control, self._tokens = control, tokens

    def on_step_begin(self, args: Any, state: Any, control: Any, optimizer: Any = None, **others: Any) -> None:
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(self._control.config, self._control.step + 1)

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self._control.after_step(self._tokens)
        control.should_training_stop = self._control.is_over


class _TrainingRows(Dataset[dict[str, Any]]):
    """All rows of an epoch; the Trainer shuffles them itself."""

    def __init__(self, data: TrainingData) -> None:
        self._data = data

    def __len__(self) -> int:
        return self._data.split.training.count(0)

    def __getitem__(self, number: int) -> dict[str, Any]:
        return self.__getitems__([number])[0]

    def __getitems__(self, numbers: Sequence[int]) -> list[dict[str, Any]]:
        rows_B = np.array(numbers, np.int64)
        return as_examples(self._data.split.training.gather(np.zeros_like(rows_B), rows_B).ids_BL, self._data.pieces)
