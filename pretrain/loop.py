"""The training loop and the final measurement on held-out rows.

Everything that differs between models, machines and precisions is settled before: the same loop runs on one CPU and on
a cluster.
"""

from __future__ import annotations

import torch
from tqdm import tqdm

from pretrain.batches import Batch, TrainingBatches, held_out_batches
from pretrain.checkpoints import Checkpoints
from pretrain.config import BadInput, PretrainConfig
from pretrain.engine import Engine, learning_rate, run_forward, seed_dropout, set_learning_rate
from pretrain.masking import Pieces
from pretrain.meter import Meter
from pretrain.model import Sums
from pretrain.rows import RowSource
from pretrain.world import World


def train(
    engine: Engine,
    batches: TrainingBatches,
    meter: Meter,
    checkpoints: Checkpoints,
    config: PretrainConfig,
    world: World,
    first_step: int,
) -> None:
    """Train from ``first_step`` to the last, both included.

    Raises:
        BadInput: the loss is not finite, or a step has nothing to predict.
    """
    steps = range(first_step, config.steps + 1)
    quiet = None if world.is_first else True  # None: quiet unless on a terminal
    for step in tqdm(steps, "pretrain", config.steps, initial=first_step - 1, unit="step", disable=quiet):
        seed_dropout(config, step, world)
        rate = learning_rate(config, step)
        set_learning_rate(engine, rate)
        micro_batches = batches.of_step(step)
        predictions = count_predictions(micro_batches, step, world)
        share = world.size * len(micro_batches)  # the engine averages over both
        for batch in micro_batches:  # the engine updates the weights on the last one
            sums = run_forward(engine, batch, world)
            loss = sums.mlm_loss * (share / predictions) + sums.nsp_loss * (share / config.global_batch)
            engine.backward(loss)
            engine.step()
            meter.add(sums, batch.predictions)
        if meter.due(step):
            meter.write(step, rate)
        if checkpoints.due(step):
            checkpoints.save(engine, step, meter.state(step))


def count_predictions(micro_batches: list[Batch], step: int, world: World) -> int:
    """Predictions of a step over all processes: what the loss is a mean over.

    Raises:
        BadInput: there are none.
    """
    here = sum(batch.predictions for batch in micro_batches)
    total = int(world.total(torch.tensor(here, device=world.device)))
    if not total:
        raise BadInput(f"step {step}: no word could be masked; the sequences hold nothing but special pieces")
    return total


def measure(
    engine: Engine, rows: RowSource, pieces: Pieces, config: PretrainConfig, world: World, micro_batch: int
) -> dict[str, float]:
    """Loss and accuracy on held-out rows, without dropout: means over all their predictions."""
    totals = torch.zeros(len(Sums._fields) + 2, dtype=torch.float64, device=world.device)
    engine.module.eval()
    with torch.no_grad():
        for batch in held_out_batches(rows, pieces, config, world.rank, world.size, micro_batch):
            sums = run_forward(engine, batch, world)
            pairs = 0 if batch.is_random_B is None else int((batch.is_random_B >= 0).sum())
            totals[:-2] += torch.stack(sums)
            totals[-2:] += torch.tensor([batch.predictions, pairs], device=world.device)
    engine.module.train()
    mlm_loss, mlm_hits, nsp_loss, nsp_hits, predictions, pairs_seen = world.total(totals).tolist()
    scores = {
        "predictions": int(predictions),
        "mlm_loss": mlm_loss / predictions,
        "masked_accuracy": mlm_hits / predictions,
    }
    if config.nsp:
        scores |= {"nsp_loss": nsp_loss / pairs_seen, "nsp_accuracy": nsp_hits / pairs_seen}
    return scores
