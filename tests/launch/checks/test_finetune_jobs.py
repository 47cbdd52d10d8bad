"""The fine-tuning jobs in --dry-run: which are done, how long the others take, and the price."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from finetune.queue.jobs import deciding, digest, plan
from launch.checks.estimate import Jobs, jobs_left
from launch.recipe import Recipe, load_recipe
from launch.stage_inputs import finetune_models

RATE = 1e9


def recipe_of(*overrides: str, encoder: Path) -> Recipe:
    settings = ["finetune.tasks=ynat,klue-re", "finetune.seeds=1,2", "finetune.overrides={ynat: {lr: 1.0e-5}}"]
    return load_recipe("smoke", ["finetune.data=malmoi:sample", f"finetune.models={encoder}", *settings, *overrides])


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    folder = tmp_path / "encoder"
    folder.mkdir()
    sizes = {"hidden_size": 10, "num_hidden_layers": 1, "intermediate_size": 20}
    (folder / "config.json").write_text(json.dumps(sizes), "utf-8")
    return folder


def leave_result(recipe: Recipe, run: Path, task: str, seed: int, seconds: float) -> None:
    """As the training of that job would, of the recipe's own settings."""
    jobs = plan(recipe.finetune, finetune_models(recipe, run))
    [job] = [job for job in jobs if (job.task, job.seed, job.settings) == (task, seed, "")]
    data = {"train": {"name": "a", "sha256": "b"}, "dev": {"name": "c", "sha256": "d"}}
    result = {
        "task": task, "model": job.model, "settings": "", "seed": seed, "seconds": seconds, "precision": "fp32",
        "data": data, "recipe": deciding(task, job.config, "fp32", {task: data}), "encoder": digest(job.encoder),
    }  # fmt: skip
    folder = job.folder(run / "finetune")
    folder.mkdir(parents=True)
    (folder / "scores.json").write_text(json.dumps(result), "utf-8")


def jobs_of(recipe: Recipe, run: Path) -> Jobs:
    return jobs_left(recipe, run, RATE, has_gpus=False)


def done(jobs: Jobs) -> list[tuple[str, int]]:
    return [(planned.job.task, planned.job.seed) for planned in jobs.planned if planned.is_done]


def test_finished_results_count_as_done_and_time_the_others(tmp_path: Path, encoder: Path) -> None:
    recipe = recipe_of("workers=2", "finetune.price_per_hour=3", encoder=encoder)
    for task, seconds in (("ynat", 1000.0), ("klue-re", 3000.0)):
        leave_result(recipe, tmp_path, task, 1, seconds)
    jobs = jobs_of(recipe, tmp_path)
    assert done(jobs) == [("klue-re", 1), ("ynat", 1)]
    assert [planned.seconds for planned in jobs.left] == [3000, 1000]
    assert jobs.seconds() == 2000
    assert jobs.sentence() == (
        "finetuning: 4 trainings, 2 done, 2 left; ~67 min of one device, ~33 min on 2, cost ~3.33"
    )
    assert [row[3:] for row in jobs.table().rows] == [["1, 2", "1", "1", "~50 min"], ["1, 2", "1", "1", "~17 min"]]


@pytest.mark.parametrize(
    ("changed", "left"),
    [
        ("finetune.overrides={ynat: {lr: 2.0e-5}}", [("klue-re", 1)]),  # nothing of the other task has changed
        ("finetune.max_train_examples=5", []),
        ("finetune.precision=bf16", []),
    ],
)
def test_other_settings_are_other_jobs(tmp_path: Path, encoder: Path, changed: str, left: Any) -> None:
    for task in ("ynat", "klue-re"):
        leave_result(recipe_of(encoder=encoder), tmp_path, task, 1, 1.0)
    assert done(jobs_of(recipe_of(changed, encoder=encoder), tmp_path)) == left


def test_a_changed_encoder_has_no_results(tmp_path: Path, encoder: Path) -> None:
    recipe = recipe_of(encoder=encoder)
    leave_result(recipe, tmp_path, "ynat", 1, 1.0)
    (encoder / "model.safetensors").write_bytes(b"other weights")
    assert done(jobs_of(recipe, tmp_path)) == []


def test_settings_that_do_not_change_a_task_are_trained_once(tmp_path: Path, encoder: Path) -> None:
    recipe = recipe_of("finetune.settings={x: {re_markers: typed}}", encoder=encoder)
    leave_result(recipe, tmp_path, "ynat", 1, 60.0)
    jobs = jobs_of(recipe, tmp_path)
    assert len(jobs.planned) == 6  # ynat is the same under x
    assert done(jobs) == [("ynat", 1)]


def test_without_results_time_is_estimated_from_operations(tmp_path: Path, encoder: Path) -> None:
    recipe = recipe_of("finetune.max_train_examples=50", "finetune.overrides={ynat: {epochs: 2}}", encoder=encoder)
    planned = next(planned for planned in jobs_of(recipe, tmp_path).planned if planned.job.task == "ynat")
    tokens, weights = 2 * 50 * 60, 4 * 10 * 10 + 2 * 10 * 20
    assert planned.seconds == pytest.approx(6 * tokens * weights / RATE)


@pytest.mark.parametrize(
    ("overrides", "slots"),
    [
        (["workers=3"], 3),
        (["launch.engine=slurm", "launch.tasks=5", "launch.at_once=2", "launch.cpus_per_task=4"], 8),
        (["launch.engine=ray", "launch.tasks=5", "launch.gpus_per_task=2", "launch.cpus_per_task=4"], 10),
    ],
)
def test_concurrent_jobs_are_limited_by_machine_or_cluster(
    tmp_path: Path, encoder: Path, overrides: list[str], slots: int
) -> None:
    assert jobs_of(recipe_of(*overrides, encoder=encoder), tmp_path).slots == slots
