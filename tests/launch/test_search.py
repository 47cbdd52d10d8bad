"""The verb ``search`` around a study: its folders and manifests, what it needs, and overrides of the space."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from finetune.search.grid import search_values
from launch.conduct import conduct
from launch.errors import LaunchError
from launch.pipeline import FINETUNE, SEARCH_STAGES, is_done, stages_of
from launch.recipe import load_recipe

OVERRIDES = ("finetune.models=/encoder", "finetune.search.method=random", "finetune.search.trials=3")


def test_the_space_is_read_from_the_command_line() -> None:
    changes = (
        "finetune.search.space.lr=1e-4,3e-4",
        "finetune.search.space.epochs=2",
        "finetune.search.space.average=swa",
    )
    recipe = load_recipe("smoke", [*OVERRIDES, *changes, "finetune.search.space.batch_size=null"])
    values = search_values(recipe.finetune.search)
    assert (values["lr"], values["epochs"], values["average"]) == ((1e-4, 3e-4), (2,), ("swa",))
    assert list(values) == ["lr", "warmup_share", "weight_decay", "epochs", "average"]
    with pytest.raises(LaunchError, match=r"finetune.search.space: rate: no such hyperparameter"):
        load_recipe("smoke", ["finetune.search.space.rate=1e-4"])


def test_a_search_is_no_stage_of_a_run_and_does_not_replace_the_recipes_trainings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    did: list[str] = []

    def work(name: str) -> Any:
        return lambda recipe, run, out: did.append(f"{name} in {out.name}") or {}

    recipe = load_recipe("smoke", OVERRIDES)
    assert [stage.name for stage in stages_of("search", recipe)] == ["sample", "finetune-search", "finetune"]
    assert "finetune-search" not in {stage.name for stage in stages_of("run", recipe)}
    stages = [
        replace(stage, work=work(name), depends_on=lambda recipe: ())
        for name, stage in zip("sb", SEARCH_STAGES, strict=True)
    ]
    monkeypatch.setattr("launch.conduct.stages_of", lambda verb, recipe: stages)
    monkeypatch.setattr("launch.conduct.find_problems", lambda *given: [])
    for overrides in (OVERRIDES, OVERRIDES, (*OVERRIDES, "finetune.search.trials=4")):  # new, again, extended
        conduct("search", "smoke", overrides, tmp_path, dry_run=False)
    assert did == ["s in finetune-search", "b in finetune"] * 2
    run = tmp_path / "smoke"
    assert (
        json.loads((run / "finetune-search" / "manifest.json").read_text("utf-8"))["settings"]["search"]["trials"] == 4
    )
    assert not is_done(replace(FINETUNE, depends_on=lambda recipe: ()), recipe, run)
