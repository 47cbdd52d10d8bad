"""The training loop: batches in, updates, and what is due after a step.

Everything that differs between models, machines and precisions is settled before: the same loop runs on one CPU and on
a cluster. No step waits for the device: sums stay there until a line of the log is due.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from tqdm import tqdm

from corpus.documents.errors import BadInput
from pretrain.batching.batches import ReadyStep, TrainingBatches, ready_steps
from pretrain.checkpoint.checkpoints import Checkpoints
from pretrain.config import PretrainConfig
from pretrain.engine.start import Engine
from pretrain.engine.world import World
from pretrain.interruption import GOES_ON, Interrupted, StopRequest
from pretrain.metrics.meter import Meter
from pretrain.metrics.watchdog import SAVING
from pretrain.model.module import mean_loss
from pretrain.rng import derive_key
from pretrain.schedule import learning_rate

BATCH = "waiting for its batch"


class Watch(NamedTuple):
    """``at`` is told of each place in a step, so that a process which hangs can be named."""

    meter: Meter
    checkpoints: Checkpoints
    measure: Callable[[], dict[str, Any]]
    stop: StopRequest
    at: Callable[[int, str], None] = lambda step, doing: None


def train(
    engine: Engine, batches: TrainingBatches, watch: Watch, config: PretrainConfig, world: World, first_step: int
) -> None:
    """Train from ``first_step`` to the last, both included.

    BadInput: the loss is not finite, or a step has nothing to predict. Interrupted: a signal asked for the end.
    """
    ready = ready_steps(batches, first_step, config.steps, world.device)
    quiet = None if world.is_first else True  # None: quiet unless on a terminal
    watch.at(first_step, BATCH)
    for found in tqdm(ready, "pretrain", config.steps, initial=first_step - 1, unit="step", disable=quiet):
        stops = _train_step(engine, found, watch, config, world)
        step, meter = found.step, watch.meter
        if meter.due(step):
            watch.at(step, "writing a line")
            meter.write(step)
        saves = watch.checkpoints.due(step)
        measures = saves or step % config.watch.measure_every == 0
        if stops or measures:
            watch.at(step, "measuring held-out text")
            with meter.paused():
                held_out = watch.measure() if measures else None
                if held_out is not None:
                    meter.write_held_out(step, held_out)
                state = meter.state(step)
                if stops or saves:
                    watch.at(step, SAVING)
                    progress = batches.progress(step) | {"tokens": meter.tokens}
                    watch.checkpoints.save(engine, progress, state, held_out)
        if stops and step < config.steps:
            watch.checkpoints.wait()
            raise Interrupted(f"stopped by a signal or with its launcher after step {step}; {GOES_ON}")
        watch.at(step + 1, BATCH)


def _train_step(engine: Engine, found: ReadyStep, watch: Watch, config: PretrainConfig, world: World) -> bool:
    """One update; returns whether any process was asked to stop."""
    # dropout depends on seed, step and rank only, so that a resumed run repeats it
    torch.manual_seed(int(derive_key(config.seed, "dropout", found.step, world.rank)))
    rate = learning_rate(config, found.step)
    watch.at(found.step, "agreeing with the others on the step")
    counts = [sum(batch.predictions for batch in found.batches), sum(batch.others for batch in found.batches)]
    flags = [int(watch.stop.is_made), int(watch.checkpoints.has_failed)]
    predictions, others, stops, failures = world.totals([*counts, *flags])
    if failures:
        watch.checkpoints.wait()  # tells all processes why
    if not predictions and config.causal_rows < config.global_batch:
        raise BadInput(f"step {found.step}: no word could be masked; the sequences hold nothing but special pieces")
    watch.meter.mark()
    for number, batch in enumerate(found.batches, 1):
        watch.at(found.step, f"forward pass of micro-batch {number}")
        sums = engine(*batch.to(world.device))
        if number == len(found.batches):
            watch.meter.mark()  # from here on processes wait for one another
        watch.at(found.step, f"backward pass of micro-batch {number}")
        engine.backward(mean_loss(sums, predictions, others, config))
        watch.meter.add(sums, batch.predictions, batch.tokens, batch.others)
    watch.at(found.step, "updating the weights")
    norm = engine.update(rate)
    watch.meter.end_step(found.step, rate, norm, found.waited_s)
    return stops > 0
