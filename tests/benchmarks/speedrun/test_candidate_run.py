"""Runs of a candidate: budgets, plans, curves, resuming, every kind of candidate."""

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

from benchmarks.speedrun import budget
from benchmarks.speedrun.budget import Budget, BudgetedRun, Calibration, Cost, SavedState
from benchmarks.speedrun.candidate_run import STATE_NAME, run_candidate
from benchmarks.speedrun.candidates import read_candidates
from benchmarks.speedrun.setup import Evaluation, Text
from corpus.documents.errors import BadInput
from pretrain.batching.batches import TrainingBatches
from pretrain.batching.held_out_split import split_rows
from pretrain.config import PretrainConfig
from pretrain.model.networks import build_network
from pretrain.pack.store import open_store
from pretrain.schedule import learning_rate
from tests.benchmarks.speedrun.small_run import BUDGET, OURS, PIECES, SIZE, THEIRS, settings_of_run


def cost_of(text: Text, command: str) -> tuple[Cost, PretrainConfig]:
    [candidate] = read_candidates([command], SIZE, "fp32")
    store, config = open_store(text.training, text.tokenizer), candidate.config
    network = build_network(config, store.meta["vocab_size"], store.meta["special_ids"])
    batches = TrainingBatches(split_rows(store, config), Evaluation(text, 16).pieces, config, 0, 1, 4)
    return Cost.of(batches, config, network, stock=candidate.side == "trainer"), config


def killed_after(points: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kill a run after it has saved its state this many times."""
    save, done = SavedState.save, list[int]()

    def save_and_die(saved: SavedState, engine: Any, state: dict[str, Any]) -> None:
        save(saved, engine, state)
        done.append(state["step"])
        if len(done) == points:
            raise KeyboardInterrupt

    monkeypatch.setattr(SavedState, "save", save_and_die)


PHASES = "pretrain.phases=[{until: 0.5, masked_share: 0.3, sequence_length: 64}, {until: 0.9, sequence_length: 64}, {}]"


def test_steps_of_a_plan_fill_the_budget_and_no_more(text: Text) -> None:
    cost, config = cost_of(text, f"{OURS} '{PHASES}'")
    assert len(cost.by_shape) == 3
    for done, left in ((0, 1e9), (7, 2e9), (30, 1e7)):
        steps = cost.steps_within(config, done, left)
        taken = [
            sum(cost.of_steps(config.model_copy(update={"steps": n}), step, step) for step in range(done + 1, n + 1))
            for n in (steps, steps + 1)
        ]
        assert taken[0] <= left < taken[1]


def test_operations_are_those_of_what_is_done(text: Text) -> None:
    ours, theirs = (cost_of(text, command)[0].by_shape[128, 0.15] for command in (OURS, THEIRS))
    assert theirs > 1.5 * ours  # the Trainer scores every position


def test_a_run_ends_at_its_budget_and_its_curve_has_the_points(finished: tuple[dict[str, Any], Path]) -> None:
    found, model = finished
    curve = found["curve"]
    assert [int(4 * point["spent"] / BUDGET.amount + 0.2) for point in curve] == [0, 1, 2, 3, 4]
    assert curve[0]["step"] == curve[0]["tokens"] == curve[0]["spent"] == 0
    assert 0.95 * BUDGET.amount < found["operations"] <= BUDGET.amount
    assert found["tokens"] == found["steps"] * 4 * 128 and curve[-1]["step"] == found["steps"]
    assert (found["loss"], found["accuracy"]) == (curve[-1]["loss"], curve[-1]["accuracy"])
    assert found["loss"] < curve[0]["loss"] < np.log(PIECES) + 0.5
    network = AutoModelForMaskedLM.from_pretrained(model)
    assert sum(p.numel() for p in network.parameters()) == found["parameters"]


def test_a_run_is_deterministic_if_operations_are_the_budget(
    finished: tuple[dict[str, Any], Path], text: Text, tmp_path: Path
) -> None:
    run_candidate(settings_of_run(text, OURS, tmp_path / "model"))
    first, second = (load_file(folder / "model.safetensors") for folder in (finished[1], tmp_path / "model"))
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("command", [THEIRS, "apart: paper pretrain.global_batch=4 pretrain.rows.packing=documents"])
def test_every_kind_of_candidate_runs(command: str, text: Text, tmp_path: Path) -> None:
    found = run_candidate(settings_of_run(text, command, tmp_path / "model"))
    assert 0.9 * BUDGET.amount < found["operations"] <= BUDGET.amount
    assert found["loss"] < np.log(PIECES) + 0.5
    assert (tmp_path / "model" / "model.safetensors").is_file()


@pytest.mark.parametrize("command", [OURS, "counted: real-small pretrain.global_batch=4"])
def test_a_killed_run_resumes_with_the_same_result(
    command: str, text: Text, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run_candidate(settings_of_run(text, command, tmp_path / "whole"))
    killed_after(2, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        run_candidate(settings_of_run(text, command, tmp_path / "killed"))
    monkeypatch.setattr(
        "benchmarks.speedrun.candidate_run.count_initial_values", None
    )  # counted once, before it was killed
    found = run_candidate(settings_of_run(text, command, tmp_path / "killed"))

    clocks = {"cpu_s", "wall_s"}
    same = [[{key: n for key, n in point.items() if key not in clocks} for point in f["curve"]] for f in (whole, found)]
    assert same[0] == same[1] and found["steps"] == whole["steps"] and found["tokens"] == whole["tokens"]
    seconds = [point["cpu_s"] for point in found["curve"]]
    assert seconds == sorted(seconds) and found["counting_seconds"] <= seconds[0]
    first, second = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "killed"))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not list((tmp_path / "killed").glob("state*"))


def test_a_damaged_state_or_one_of_other_settings_is_ignored(
    finished: tuple[dict[str, Any], Path], text: Text, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        killed_after(1, patch)
        run_candidate(settings_of_run(text, f"{OURS} pretrain.optimizer.lr=1e-4", tmp_path / "model"))
    path = tmp_path / "model" / STATE_NAME
    for size in (path.stat().st_size, 5_000):
        cut = path.read_bytes()[:size]
        found = run_candidate(settings_of_run(text, OURS, tmp_path / "model"))
        assert [point["loss"] for point in found["curve"]] == [point["loss"] for point in finished[0]["curve"]]
        path.write_bytes(cut)


def test_seconds_resume_at_the_saved_value(text: Text, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, (cost, config) = Clock(monkeypatch), cost_of(text, OURS)
    budget, engine = Budget("cpu_s", 100.5), FakeEngine()
    run = BudgetedRun(config, budget, cost, 5, 1.0, SavedState(tmp_path / STATE_NAME, "order"))
    clock.now += 20
    run.ready(lambda: {"loss": 1.0, "accuracy": 0.5}, engine)
    while run.step < 30:  # the state at 41 seconds is saved, nine later steps are lost
        clock.now += 1.0
        run.after_step(512)
    clock.now += 1000
    again = BudgetedRun(config, budget, cost, 5, None, SavedState(tmp_path / STATE_NAME, "order"))
    clock.now += 30
    drive(again, clock, lambda step: 1.0, engine=engine)
    assert (again.step, again.tokens, again.counting_s, again.seconds_a_step) == (80, 80 * 512, 20, 1.0)
    assert [point["spent"] for point in again.curve] == [20, 21, 41, 61, 81, 100]
    assert engine.restored == [21]


class FakeEngine:
    """An engine with one weight."""

    def __init__(self) -> None:
        self.restored: list[int] = []

    def state(self, *, keep: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        return {"weight": torch.ones(1)}, {}

    def restore(self, weights: dict[str, Any], moments: dict[str, Any], step: int) -> None:
        self.restored.append(step)


class Clock:
    """CPU time that a test controls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(budget.time, "process_time", lambda: self.now)


def drive(
    run: BudgetedRun, clock: Clock, seconds: Callable[[int], float], measuring: float = 0.0, engine: Any = None
) -> list[int]:
    """Run steps of ``seconds``; returns the number of planned steps after each."""

    def measured() -> dict[str, float]:
        clock.now += measuring
        return {"loss": 1.0, "accuracy": 0.5}

    run.ready(measured, engine)
    plans = [run.config.steps]
    while not run.is_over:
        clock.now += seconds(run.step + 1)
        run.after_step(512)
        plans.append(run.config.steps)
    return plans


def test_a_run_counts_cpu_seconds_without_those_of_evaluation(text: Text, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, (cost, config) = Clock(monkeypatch), cost_of(text, OURS)
    run = BudgetedRun(config, Budget("cpu_s", 100.5), cost, 5, 1.0)
    clock.now += 20  # counting before the first step
    plans = drive(run, clock, lambda step: 1.0, measuring=50.0)
    assert set(plans) == {80} and run.step == 80
    assert run.counting_s == 20
    assert [point["spent"] for point in run.curve] == [20, 21, 41, 61, 81, 100]


def test_a_run_logs_its_progress(text: Text, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    clock, (cost, config) = Clock(monkeypatch), cost_of(text, OURS)
    with caplog.at_level(logging.INFO):
        drive(BudgetedRun(config, Budget("cpu_s", 10.0), cost, 3, 1.0), clock, lambda step: 1.0)
    assert caplog.messages == [f"{share} %: loss 1.000, accuracy 50.0 %" for share in (0, 40, 70)]


def test_plan_follows_the_speed_of_the_machine(text: Text, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, (cost, config) = Clock(monkeypatch), cost_of(text, OURS)
    run = BudgetedRun(config, Budget("cpu_s", 100.5), cost, 10, 2.0)  # the calibration said two seconds
    plans = drive(run, clock, lambda step: 1.0)
    assert (plans[0], plans[-1], run.step) == (50, 100, 100)
    assert learning_rate(run.config, run.step) == pytest.approx(config.optimizer.lr / (100 - 2))


def test_a_run_stops_at_the_budget_also_before_the_planned_end(text: Text, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, (cost, config) = Clock(monkeypatch), cost_of(text, OURS)
    run = BudgetedRun(config, Budget("cpu_s", 100.5), cost, 2, 1.0)
    drive(run, clock, lambda step: 1.0 if step <= 60 else 10.0)  # something slows it down after the last plan
    assert run.step == 65 and run.curve[-1]["spent"] == 110


def test_a_budget_without_a_schedule_is_refused(text: Text, monkeypatch: pytest.MonkeyPatch) -> None:
    Clock(monkeypatch)
    cost, config = cost_of(text, OURS)
    run = BudgetedRun(config, Budget("cpu_s", 100.5), cost, 2, 30.0)
    with pytest.raises(BadInput, match="the budget allows only 3 steps"):
        run.ready(dict)


def test_calibration_leaves_the_first_steps_out(text: Text, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, (_, config) = Clock(monkeypatch), cost_of(text, OURS)
    trial = Calibration(config, Budget("cpu_s", 200.0))
    while not trial.is_over:
        clock.now += 9.0 if trial.step < 2 else 0.25
        trial.after_step(512)
    assert trial.seconds == 0.25
    assert trial.step == 2 + 8  # a hundredth of the budget


def test_a_run_with_a_clock_ends_near_its_budget(text: Text, tmp_path: Path) -> None:
    found = run_candidate(settings_of_run(text, OURS, tmp_path / "model", Budget("cpu_s", 1.0), points=3))
    assert 0.5 < found["seconds"] < 2  # plus a step
    assert found["seconds_a_step"] > 0 and len(found["curve"]) >= 2
