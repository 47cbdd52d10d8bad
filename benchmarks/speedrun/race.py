"""One contestant and one seed, in a process of its own: trained until the budget is spent, measured on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel
from transformers import PreTrainedModel

from benchmarks.pretrain import Given
from benchmarks.speedrun.arena import Judge, Text
from benchmarks.speedrun.contestants import Side
from benchmarks.speedrun.kept import Kept
from benchmarks.speedrun.pace import Budget, Calibration, Cost, Race
from benchmarks.speedrun.ways import SIDES, Course, Weights
from pretrain.checkpoint.export import save_model, with_export_scales
from pretrain.config import PretrainConfig
from pretrain.engine.start import ready_for_engine
from pretrain.engine.world import join_world
from pretrain.model.starts import count_initial_values, write_initial_values
from pretrain.pack.store import vocabulary_digest

MODEL_INFO_NAME = "race.safetensors"


class Order(BaseModel, frozen=True):
    """What the process is told; it travels as JSON."""

    side: Side
    config: PretrainConfig
    training: Path
    held_out: Path
    tokenizer: Path
    budget: Budget
    points: int
    rows: int  # to measure on
    threads: int
    model: Path  # the folder that the trained model goes to


def run_race(told: dict[str, Any]) -> dict[str, Any]:
    """Train by an ``Order``, within its budget, and save the model.

    Before the budget begins, a few steps on a copy tell what a step costs. One that was killed goes on from its last
    point, but for the Trainer's.

    Returns:
        "loss", "accuracy": at the end; "steps", "tokens", "operations"; "seconds": CPU seconds counted, and of them
        "counting_seconds" before the first step; "seconds_a_step": as calibrated; "parameters"; "curve": as in
        ``Race``.

    Raises:
        BadInput: the budget holds no schedule, or the loss is not finite.
    """
    order = Order.model_validate(told)
    torch.set_num_threads(order.threads)
    config = order.config
    given = Given.open(order.training, order.tokenizer, config)
    judge = Judge(Text(order.training, order.held_out, order.tokenizer, {}), order.rows)
    with join_world(config.engine.device) as world, ready_for_engine(config, world):
        held_out = [(weight, batch.to(world.device)) for weight, batch in judge.batches(config)]
        course = Course(given, order.tokenizer, world, held_out)
        cost = Cost.of(course.batches(config), config, given.network(), stock=order.side == "trainer")
        kept = Kept(order.model / MODEL_INFO_NAME, order.model_dump_json())
        seconds = None if kept.state else _calibrate(order, course)
        race = Race(config, order.budget, cost, order.points, seconds, kept)
        network = given.network()
        if not kept.state:
            first = count_initial_values(given.split.training, given.pieces, network.config.hidden_size, config)
            write_initial_values(network, first)
        weights = SIDES[order.side](course, network, race)
    found = {
        "steps": race.step,
        "tokens": race.tokens,
        "operations": race.operations,
        "parameters": sum(p.numel() for p in network.parameters()),
    }
    _save(order, network, weights, race.config, found)
    kept.drop()
    last = race.curve[-1]
    found |= {"loss": last["loss"], "accuracy": last["accuracy"], "seconds": last["cpu_s"]}
    return found | {"counting_seconds": race.counting_s, "seconds_a_step": race.seconds_a_step, "curve": race.curve}


def _calibrate(order: Order, course: Course) -> float | None:
    """CPU seconds of a step; None where operations are the budget."""
    if order.budget.unit == "operations":
        return None
    trial = Calibration(order.config, order.budget)
    SIDES[order.side](course, course.given.network(), trial)
    return trial.seconds


def _save(
    order: Order, network: PreTrainedModel, weights: Weights, config: PretrainConfig, found: dict[str, Any]
) -> None:
    order.model.mkdir(parents=True, exist_ok=True)
    facts = {"step": found["steps"], "vocabulary_sha256": vocabulary_digest(order.tokenizer), **found}
    save_model(order.model, network, with_export_scales(weights), order.tokenizer, config, facts)
