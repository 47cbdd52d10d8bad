"""The verb ``search``: the stages of a study, and the training of what it found into the results of ``finetune``.

The best are ordinary results, so report and comparisons take them; the stage of ``finetune`` is complete for this
recipe alone afterwards, so ``malmoi finetune`` still trains the recipe's own settings beside them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from launch.pipeline import STAGES, Stage, run_finetune
from launch.recipe import SEARCH_FOLDER, Recipe

FINETUNE = next(stage for stage in STAGES if stage.name == "finetune")


def run_search(recipe: Recipe, run: Path, out: Path) -> dict[str, Any]:
    from finetune.search import run as stage

    return run_finetune(recipe, run, out, stage.run)


def run_best(recipe: Recipe, run: Path, out: Path) -> dict[str, Any]:
    from finetune.search.run import train_best

    return run_finetune(recipe, run, out, partial(train_best, searched=run / SEARCH_FOLDER))


def _settings(recipe: Recipe) -> dict[str, Any]:
    return {**FINETUNE.settings(recipe), "search": recipe.finetune.search.model_dump(mode="json")}


SEARCH_STAGES: tuple[Stage, ...] = (
    replace(FINETUNE, name=SEARCH_FOLDER, settings=_settings, work=run_search, meets_another="refuses"),
    replace(FINETUNE, settings=_settings, work=run_best),
)


def search_stages(recipe: Recipe) -> list[Stage]:
    """What the verb runs, in order."""
    sample = [stage for stage in STAGES if stage.name == "sample" and recipe.uses_sample]
    return [*sample, *SEARCH_STAGES]
