"""Extending the training of a run: the manifest follows, and stages made from the shorter training block it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from corpus.documents.atomic_files import with_digest
from corpus.documents.errors import BadInput
from launch import manifest
from launch.checks.preflight import _check_folders
from launch.conduct import run_stage
from launch.errors import LaunchError
from launch.pipeline import STAGES, head_of
from launch.recipe import Recipe, load_recipe
from pretrain.checkpoint.find_checkpoint import STATE_NAMES

LONG = (
    "pretrain.steps=3200",
    "pretrain.optimizer.schedule=wsd",
    "pretrain.optimizer.warmup_steps=10",
    "pretrain.phases=[]",
)
STAGE = {stage.name: stage for stage in STAGES}


def recipe_of(*overrides: str) -> Recipe:
    return load_recipe("smoke", [*LONG, *overrides])


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A finished training of 3,200 steps with a checkpoint after step 2,000; its rate falls from step 2,561 on."""
    recipe = recipe_of()
    for name in ("tokens", "tokenizer"):
        manifest.start(tmp_path / name, head := manifest.Head(name, {}, {}))
        manifest.finish(tmp_path / name, head, {}, 1.0, 1)
    keep_checkpoint(tmp_path, recipe, 2000)
    manifest.start(tmp_path / "pretrain", head := head_of(STAGE["pretrain"], recipe, tmp_path))
    manifest.finish(tmp_path / "pretrain", head, {}, 1.0, 1)
    return tmp_path


def keep_checkpoint(run: Path, recipe: Recipe, step: int) -> None:
    folder = run / "pretrain" / "checkpoints" / f"step-{step:09}"
    folder.mkdir(parents=True)
    loop = {"step": step, "progress": {}, "meter": [], "held_out": None, "scaling": {}, "vocabulary_sha256": "",
            "config": recipe.pretrain.identity(), "files": dict.fromkeys(STATE_NAMES)}  # fmt: skip
    (folder / "loop.json").write_text(json.dumps(with_digest(loop)), "utf-8")


def train(recipe: Recipe, run: Path) -> bool:
    """Run the stage with its work left out."""

    def work(recipe: Recipe, run: Path, out: Path) -> dict[str, Any]:
        assert manifest.read_manifest(out) is None  # from here on the folder is incomplete
        return {"steps": recipe.pretrain.steps}

    return run_stage(replace(STAGE["pretrain"], work=work), recipe, run)


def test_a_longer_schedule_extends_the_training(run: Path) -> None:
    assert not train(recipe_of(), run)
    longer = recipe_of("pretrain.steps=6400")
    assert list(_check_folders([STAGE["pretrain"]], longer, run)) == []
    assert train(longer, run) and not train(longer, run)
    found = manifest.read_manifest(run / "pretrain")
    assert found is not None and found["settings"]["steps"] == found["counts"]["steps"] == 6400


def test_other_intervals_of_checkpoints_and_measurements_leave_a_finished_training_complete(run: Path) -> None:
    assert not train(recipe_of("pretrain.saved.checkpoint_every=7", "pretrain.watch.measure_rows=9"), run)


def test_a_manifest_of_an_earlier_version_with_intervals_still_extends(run: Path) -> None:
    path = run / "pretrain" / "manifest.json"
    found = manifest.read_manifest(run / "pretrain")
    assert found is not None
    found["settings"]["saved"] = {"checkpoint_every": 100}
    path.write_text(json.dumps(found), "utf-8")
    assert train(recipe_of("pretrain.steps=6400"), run)


@pytest.mark.parametrize("override", ["pretrain.seed=7", "pretrain.optimizer.lr=1.0e-5"])
def test_other_changed_settings_are_refused(run: Path, override: str) -> None:
    with pytest.raises(LaunchError, match="made with another recipe"):
        train(recipe_of("pretrain.steps=6400", override), run)


def test_training_past_the_stable_rate_is_refused_and_stays_complete(run: Path) -> None:
    keep_checkpoint(run, recipe_of(), 3200)
    with pytest.raises(BadInput, match=r"which change step 2562; .*pretrain\.continue_from=.*step-000003200"):
        train(recipe_of("pretrain.steps=6400"), run)
    assert not train(recipe_of(), run)


def test_stages_made_from_the_shorter_run_block_the_extension(run: Path) -> None:
    for name in ("model", "report"):
        manifest.start(run / name, manifest.Head(name, {}, {}))
    with pytest.raises(LaunchError, match=r"model, .*report: made from pretrain before; delete or move it"):
        train(recipe_of("pretrain.steps=6400"), run)
    assert not train(recipe_of(), run)
