"""Races: budgets that hold, plans that fit, curves with their points, every kind of contestant."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForMaskedLM

from benchmarks.speedrun import pace
from benchmarks.speedrun.arena import Judge, Text
from benchmarks.speedrun.contestants import read_contestants
from benchmarks.speedrun.kept import Kept
from benchmarks.speedrun.pace import Budget, Calibration, Cost, Race
from benchmarks.speedrun.race import MODEL_INFO_NAME, run_race
from corpus.documents.errors import BadInput
from pretrain.batching.batches import TrainingBatches, split_rows
from pretrain.config import PretrainConfig
from pretrain.model.networks import build_network
from pretrain.pack.store import open_store
from pretrain.schedule import learning_rate
from tests.benchmarks.speedrun.course import BUDGET, OURS, PIECES, SIZE, THEIRS, order_of


def cost_of(text: Text, told: str) -> tuple[Cost, PretrainConfig]:
    [contestant] = read_contestants([told], SIZE, "fp32")
    store, config = open_store(text.training, text.tokenizer), contestant.config
    network = build_network(config, store.meta["vocab_size"], store.meta["special_ids"])
    batches = TrainingBatches(split_rows(store, config), Judge(text, 16).pieces, config, 0, 1, 4)
    return Cost.of(batches, config, network, stock=contestant.side == "trainer"), config


def killed_after(points: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a race be killed when it has kept so many points."""
    save, done = Kept.save, list[int]()

    def saves(kept: Kept, engine: Any, state: dict[str, Any]) -> None:
        save(kept, engine, state)
        done.append(state["step"])
        if len(done) == points:
            raise KeyboardInterrupt

    monkeypatch.setattr(Kept, "save", saves)


PHASES = "pretrain.rows.masking.shares=[{share: 0.3, until: 0.5}, {share: 0.15}]"


def test_steps_of_a_plan_fill_the_budget_and_no_more(text: Text) -> None:
    cost, config = cost_of(text, f"{OURS} pretrain.rows.short_length=64 '{PHASES}'")
    assert len(cost.by_shape) == 3
    for done, left in ((0, 1e9), (7, 2e9), (30, 1e7)):
        steps = cost.steps_within(config, done, left)
        taken = [
            sum(cost.of_steps(config.model_copy(update={"steps": n}), step, step) for step in range(done + 1, n + 1))
            for n in (steps, steps + 1)
        ]
        assert taken[0] <= left < taken[1]


def test_operations_are_those_of_what_is_done(text: Text) -> None:
    ours, theirs = (cost_of(text, told)[0].by_shape[128, 0.15] for told in (OURS, THEIRS))
    assert theirs > 1.5 * ours  # the Trainer scores every position


def test_race_ends_at_its_budget_and_its_curve_has_the_points(raced: tuple[dict[str, Any], Path]) -> None:
    found, model = raced
    curve = found["curve"]
    assert [int(4 * point["spent"] / BUDGET.amount + 0.2) for point in curve] == [0, 1, 2, 3, 4]
    assert curve[0]["step"] == curve[0]["tokens"] == curve[0]["spent"] == 0
    assert 0.95 * BUDGET.amount < found["operations"] <= BUDGET.amount
    assert found["tokens"] == found["steps"] * 4 * 128 and curve[-1]["step"] == found["steps"]
    assert (found["loss"], found["accuracy"]) == (curve[-1]["loss"], curve[-1]["accuracy"])
    assert found["loss"] < curve[0]["loss"] < np.log(PIECES) + 0.5
    network = AutoModelForMaskedLM.from_pretrained(model)
    assert sum(p.numel() for p in network.parameters()) == found["parameters"]


def test_race_repeats_itself_where_operations_are_the_budget(
    raced: tuple[dict[str, Any], Path], text: Text, tmp_path: Path
) -> None:
    run_race(order_of(text, OURS, tmp_path / "model"))
    first, second = (load_file(folder / "model.safetensors") for folder in (raced[1], tmp_path / "model"))
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("told", [THEIRS, "small-batch: paper pretrain.global_batch=4 pretrain.rows.packing=documents"])
def test_every_kind_of_contestant_runs_the_course(told: str, text: Text, tmp_path: Path) -> None:
    found = run_race(order_of(text, told, tmp_path / "model"))
    assert 0.9 * BUDGET.amount < found["operations"] <= BUDGET.amount
    assert found["loss"] < np.log(PIECES) + 0.5
    assert (tmp_path / "model" / "model.safetensors").is_file()


@pytest.mark.parametrize("told", [OURS, "small-batch: paper pretrain.global_batch=4"])  # fmt: skip
def test_a_race_that_was_killed_goes_on_to_the_same_end(
    told: str, text: Text, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run_race(order_of(text, told, tmp_path / "whole"))
    killed_after(2, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        run_race(order_of(text, told, tmp_path / "killed"))
    monkeypatch.setattr("benchmarks.speedrun.race.count_initial_values", None)  # counted once, before it was killed
    found = run_race(order_of(text, told, tmp_path / "killed"))

    clocks = {"cpu_s", "wall_s"}
    same = [[{key: n for key, n in point.items() if key not in clocks} for point in f["curve"]] for f in (whole, found)]
    assert same[0] == same[1] and found["steps"] == whole["steps"] and found["tokens"] == whole["tokens"]
    seconds = [point["cpu_s"] for point in found["curve"]]
    assert seconds == sorted(seconds) and found["counting_seconds"] < seconds[0]
    first, second = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "killed"))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not list((tmp_path / "killed").glob("race*"))


def test_what_another_order_kept_or_a_full_disk_cut_is_left_aside(
    raced: tuple[dict[str, Any], Path], text: Text, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        killed_after(1, patch)
        run_race(order_of(text, f"{OURS} pretrain.optimizer.lr=1e-4", tmp_path / "model"))
    kept = tmp_path / "model" / MODEL_INFO_NAME
    for size in (kept.stat().st_size, 5_000):
        cut = kept.read_bytes()[:size]
        found = run_race(order_of(text, OURS, tmp_path / "model"))
        assert [point["loss"] for point in found["curve"]] == [point["loss"] for point in raced[0]["curve"]]
        kept.write_bytes(cut)


def test_seconds_go_on_where_they_were(text: Text, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, (cost, config) = Clock(monkeypatch), cost_of(text, OURS)
    budget, engine = Budget("cpu_s", 100.5), FakeEngine()
    race = Race(config, budget, cost, 5, 1.0, Kept(tmp_path / MODEL_INFO_NAME, "order"))
    clock.now += 20
    race.ready(lambda: {"loss": 1.0, "accuracy": 0.5}, engine)
    while race.step < 30:  # the point at 41 seconds is kept, the nine after it are lost
        clock.now += 1.0
        race.after_step(512)
    clock.now += 1000
    again = Race(config, budget, cost, 5, None, Kept(tmp_path / MODEL_INFO_NAME, "order"))
    clock.now += 30
    drive(again, clock, lambda step: 1.0, engine=engine)
    assert (again.step, again.tokens, again.counting_s, again.seconds_a_step) == (80, 80 * 512, 20, 1.0)
    assert [point["spent"] for point in again.curve] == [20, 21, 41, 61, 81, 100]
    assert engine.restored == [21]


class FakeEngine:
    """Weights of one number, to be kept."""

    def __init__(self) -> None:
        self.restored: list[int] = []

    def state(self, *, keep: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        return {"weight": torch.ones(1)}, {}

    def restore(self, weights: dict[str, Any], moments: dict[str, Any], step: int) -> None:
        self.restored.append(step)


class Clock:
    """CPU time that goes on only where a test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(pace.time, "process_time", lambda: self.now)


def drive(
    race: Race, clock: Clock, seconds: Callable[[int], float], measuring: float = 0.0, engine: Any = None
) -> list[int]:
    """Let steps take ``seconds``; returns the number of steps planned after each."""

    def measured() -> dict[str, float]:
        clock.now += measuring
        return {"loss": 1.0, "accuracy": 0.5}

    race.ready(measured, engine)
    plans = [race.config.steps]
    while not race.is_over:
        clock.now += seconds(race.step + 1)
        race.after_step(512)
        plans.append(race.config.steps)
    return plans


def test_race_counts_cpu_seconds_but_those_of_measuring(text: Text, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, (cost, config) = Clock(monkeypatch), cost_of(text, OURS)
    race = Race(config, Budget("cpu_s", 100.5), cost, 5, 1.0)
    clock.now += 20  # counting before the first step
    plans = drive(race, clock, lambda step: 1.0, measuring=50.0)
    assert set(plans) == {80} and race.step == 80
    assert race.counting_s == 20
    assert [point["spent"] for point in race.curve] == [20, 21, 41, 61, 81, 100]


def test_race_tells_how_far_it_is(
    text: Text, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock, (cost, config) = Clock(monkeypatch), cost_of(text, OURS)
    with caplog.at_level(logging.INFO):
        drive(Race(config, Budget("cpu_s", 10.0), cost, 3, 1.0), clock, lambda step: 1.0)
    assert caplog.messages == [f"{share} %: loss 1.000, accuracy 50.0 %" for share in (0, 40, 70)]


def test_plan_follows_the_speed_of_the_machine(text: Text, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, (cost, config) = Clock(monkeypatch), cost_of(text, OURS)
    race = Race(config, Budget("cpu_s", 100.5), cost, 10, 2.0)  # the calibration said two seconds
    plans = drive(race, clock, lambda step: 1.0)
    assert (plans[0], plans[-1], race.step) == (50, 100, 100)
    assert learning_rate(race.config, race.step) == pytest.approx(config.optimizer.lr / (100 - 2))


def test_race_stops_at_the_budget_whatever_was_planned(text: Text, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, (cost, config) = Clock(monkeypatch), cost_of(text, OURS)
    race = Race(config, Budget("cpu_s", 100.5), cost, 2, 1.0)
    drive(race, clock, lambda step: 1.0 if step <= 60 else 10.0)  # something slows it down after the last plan
    assert race.step == 65 and race.curve[-1]["spent"] == 110


def test_budget_of_no_schedule_is_refused(text: Text, monkeypatch: pytest.MonkeyPatch) -> None:
    Clock(monkeypatch)
    cost, config = cost_of(text, OURS)
    race = Race(config, Budget("cpu_s", 100.5), cost, 2, 30.0)
    with pytest.raises(BadInput, match="the budget is that of 3 steps"):
        race.ready(dict)


def test_calibration_leaves_the_first_steps_out(text: Text, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, (_, config) = Clock(monkeypatch), cost_of(text, OURS)
    trial = Calibration(config, Budget("cpu_s", 200.0))
    while not trial.is_over:
        clock.now += 9.0 if trial.step < 2 else 0.25
        trial.after_step(512)
    assert trial.seconds == 0.25
    assert trial.step == 2 + 8  # a hundredth of the budget


def test_race_with_a_clock_ends_near_its_budget(text: Text, tmp_path: Path) -> None:
    found = run_race(order_of(text, OURS, tmp_path / "model", Budget("cpu_s", 1.0), points=3))
    assert 0.5 < found["seconds"] < 2  # but for a step
    assert found["seconds_a_step"] > 0 and len(found["curve"]) >= 2
