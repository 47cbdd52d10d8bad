"""The training loop: one update per step, then log lines, held-out measurements and checkpoints that are due.

The loop is the same on one CPU and on a cluster, for all models and precisions. No step waits for the device: sums stay
there until a log line is due.
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
from pretrain.interruption import RESUME_ADVICE, Interrupted, StopRequest
from pretrain.metrics.meter import Meter
from pretrain.metrics.watchdog import SAVING
from pretrain.model.loss import mean_loss
from pretrain.rng import derive_key
from pretrain.schedule import learning_rate

BATCH = "waiting for a batch"


class Monitors(NamedTuple):
    """What runs after the updates. ``at`` notes each place in a step, so the watchdog can name a process that hangs."""

    meter: Meter
    checkpoints: Checkpoints
    measure: Callable[[], dict[str, Any]]
    stop: StopRequest
    begin_phase: Callable[[int], None] = lambda step: None  # of the step; only after the last checkpoint is written
    at: Callable[[int, str], None] = lambda step, doing: None


def train(
    engine: Engine, batches: TrainingBatches, watch: Monitors, config: PretrainConfig, world: World, first_step: int
) -> None:
    """Train from ``first_step`` to the last, both included.

    BadInput: the loss is not finite, or a step has nothing to predict. Interrupted: stopped by a signal.
    """
    ready = ready_steps(batches, first_step, config.steps, world.device)
    quiet = None if world.is_first else True  # None: quiet unless on a terminal
    meter = watch.meter
    watch.at(first_step, BATCH)

    def save(step: int, held_out: dict[str, Any] | None) -> None:
        state = meter.state(step)
        watch.at(step, SAVING)
        watch.checkpoints.save(engine, batches.progress(step) | {"tokens": meter.tokens}, state, held_out)

    for ready_step in tqdm(ready, "pretrain", config.steps, initial=first_step - 1, unit="step", disable=quiet):
        step = ready_step.step
        if step > first_step and batches.phase_of(step) != batches.phase_of(step - 1):
            watch.checkpoints.wait()
            watch.begin_phase(step)
        if not _train_step(engine, ready_step, watch, config, world):
            if first_step < step and not watch.checkpoints.due(step - 1):
                save(step - 1, None)
            watch.checkpoints.wait()
            raise Interrupted(f"stopped by a signal or with its launcher after step {step - 1}; {RESUME_ADVICE}")
        if meter.due(step):
            watch.at(step, "writing a log line")
            meter.write(step)
        saves = watch.checkpoints.due(step)
        if saves or step % config.watch.measure_every == 0:
            watch.at(step, "measuring held-out text")
            with meter.paused():
                held_out = watch.measure()
                meter.write_held_out(step, held_out)
                if saves:
                    save(step, held_out)
        watch.at(step + 1, BATCH)


def _train_step(engine: Engine, ready: ReadyStep, watch: Monitors, config: PretrainConfig, world: World) -> bool:
    """One update; False if any process is requested to stop: then the weights are those before the step."""
    # dropout depends on seed, step and rank only, so that a resumed run repeats it
    torch.manual_seed(int(derive_key(config.seed, "dropout", ready.step, world.rank)))
    rate = learning_rate(config, ready.step)
    watch.at(ready.step, "synchronizing the step with the other processes")
    counts = [sum(batch.predictions for batch in ready.batches), sum(batch.others for batch in ready.batches)]
    flags = [int(watch.stop.is_made), int(watch.checkpoints.has_failed)]
    predictions, others, stops, failures = world.totals([*counts, *flags])
    if failures:
        watch.checkpoints.wait()  # raises the error in all processes
    if stops:
        return False
    if not predictions and not config.is_causal:
        raise BadInput(f"step {ready.step}: no word could be masked; the sequences hold only special pieces")
    engine.begin_step(len(ready.batches))
    watch.meter.record_point()
    quarter = max(1, len(ready.batches) // 4)
    for number, batch in enumerate(ready.batches, 1):
        watch.at(ready.step, f"forward pass of micro-batch {number}")
        sums = engine(*batch.to(world.device))
        is_last = number == len(ready.batches)
        if is_last:
            watch.meter.record_point()  # after this, processes wait for each other
        watch.at(ready.step, f"backward pass of micro-batch {number}")
        engine.backward(mean_loss(sums, predictions, others))
        watch.meter.add(sums, batch.predictions, batch.tokens, batch.others)
        if number % quarter == 0 and not is_last and world.totals([int(watch.stop.is_made)])[0]:
            return False
    watch.at(ready.step, "updating the weights")
    norm = engine.update(rate)
    watch.meter.end_step(ready.step, rate, norm, ready.waited_s)
    return True
