"""Train one candidate with one seed until the budget is spent, in its own process, with evaluations during training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel
from transformers import PreTrainedModel

from benchmarks.pretrain import TrainingData
from benchmarks.speedrun.budget import Budget, BudgetedRun, Calibration, Cost, SavedState
from benchmarks.speedrun.candidates import Side
from benchmarks.speedrun.setup import Evaluation, Text
from benchmarks.speedrun.trainers import TRAINERS, RunContext, Weights
from pretrain.checkpoint.export import save_model, with_export_scales
from pretrain.config import PretrainConfig
from pretrain.engine.start import ready_for_engine
from pretrain.engine.world import join_world
from pretrain.model.initialization import count_initial_values, write_initial_values
from pretrain.pack.store import vocabulary_digest

STATE_NAME = "state.safetensors"


class RunSettings(BaseModel, frozen=True):
    """Input of the process; sent as JSON."""

    side: Side
    config: PretrainConfig
    training: Path
    held_out: Path
    tokenizer: Path
    budget: Budget
    points: int
    rows: int  # for evaluation
    model: Path  # output folder of the trained model


def run_candidate(fields: dict[str, Any]) -> dict[str, Any]:
    """Train as ``RunSettings`` says, within the budget, and save the model.

    Before the budget starts, a few steps on a copy measure the cost of a step. A killed run resumes from its last
    evaluation, except with the Trainer.

    Returns:
        "loss" and "accuracy" at the end, "steps", "tokens", "operations", "seconds" (CPU), "counting_seconds" (the part
        before the first step), "seconds_a_step" of the calibration, "parameters", "curve" (see ``BudgetedRun``).

    Raises:
        BadInput: the budget is too small for a schedule, or the loss is not finite.
    """
    settings = RunSettings.model_validate(fields)
    torch.set_num_threads(1)
    config = settings.config
    data = TrainingData.open(settings.training, settings.tokenizer, config)
    evaluation = Evaluation(Text(settings.training, settings.held_out, settings.tokenizer, {}), settings.rows)
    with join_world(config.engine.device) as world, ready_for_engine(config, world):
        held_out = [(weight, batch.to(world.device)) for weight, batch in evaluation.batches(config)]
        context = RunContext(data, settings.tokenizer, world, held_out)
        cost = Cost.of(context.batches(config), config, data.network(), stock=settings.side == "trainer")
        saved = SavedState(settings.model / STATE_NAME, settings.model_dump_json())
        seconds = None if saved.state else _calibrate(settings, context)
        run = BudgetedRun(config, settings.budget, cost, settings.points, seconds, saved)
        network = data.network()
        if not saved.state:
            first = count_initial_values(data.split.training, data.pieces, network.config.hidden_size, config)
            write_initial_values(network, first)
        weights = TRAINERS[settings.side](context, network, run)
    figures = {
        "steps": run.step,
        "tokens": run.tokens,
        "operations": run.operations,
        "parameters": sum(p.numel() for p in network.parameters()),
    }
    _save(settings, network, weights, run.config, figures)
    saved.remove()
    last = run.curve[-1]
    figures |= {"loss": last["loss"], "accuracy": last["accuracy"], "seconds": last["cpu_s"]}
    return figures | {"counting_seconds": run.counting_s, "seconds_a_step": run.seconds_a_step, "curve": run.curve}


def _calibrate(settings: RunSettings, context: RunContext) -> float | None:
    """CPU seconds of a step; None if the budget is operations."""
    if settings.budget.unit == "operations":
        return None
    trial = Calibration(settings.config, settings.budget)
    TRAINERS[settings.side](context, context.data.network(), trial)
    return trial.seconds


def _save(
    settings: RunSettings, network: PreTrainedModel, weights: Weights, config: PretrainConfig, figures: dict[str, Any]
) -> None:
    settings.model.mkdir(parents=True, exist_ok=True)
    facts = {"step": figures["steps"], "vocabulary_sha256": vocabulary_digest(settings.tokenizer), **figures}
    save_model(settings.model, network, with_export_scales(weights), settings.tokenizer, config, facts)
