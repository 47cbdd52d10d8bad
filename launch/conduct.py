"""What a stage verb does: load the recipe, show the plan or work through the stages, print where the result is."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import yaml

from launch.console import PlainConsole, rank, world_size
from launch.errors import LaunchError
from launch.extras import missing_modules, require
from launch.manifest import MANIFEST_NAME
from launch.pipeline import given_inputs, run_stage, stages_of
from launch.recipe import Recipe, load_recipe
from launch.tables import Table, print_table

log = logging.getLogger(__name__)


def conduct(verb: str, name: str, overrides: Sequence[str], runs: Path, *, dry_run: bool) -> None:
    """Run the stages of ``verb`` for a recipe below ``runs/<recipe name>``."""
    recipe = load_recipe(name, overrides)
    if world_size() > 1 and verb != "pretrain":
        raise LaunchError(f"{verb} runs in one process; under torchrun or deepspeed use the verb pretrain")
    run = runs / recipe.name
    if dry_run:
        if rank() == 0:
            show_plan(verb, recipe, run)
        return
    stages = stages_of(verb, recipe)
    require(verb, missing_modules(stage.name for stage in stages))
    for stage in stages:
        stage.outside(recipe)  # a missing file is noticed before the first stage works
    for stage in stages:
        if stage.name == "pretrain" or rank() == 0:
            run_stage(stage, recipe, run)
    if verb in ("run", "finetune"):
        show_scores(run)
    if verb in ("run", "report"):
        PlainConsole().print(f"\nreport: {run / 'report' / 'report.html'}", soft_wrap=True)


def show_plan(verb: str, recipe: Recipe, run: Path) -> None:
    """Print the resolved recipe and, for each stage, its folder and whether it is complete."""
    console = PlainConsole(soft_wrap=True)
    resolved = yaml.safe_dump(recipe.model_dump(mode="json"), allow_unicode=True, sort_keys=False)
    console.print(resolved)
    rows = []
    for stage in stages_of(verb, recipe):
        folder = run / stage.name
        state = "complete" if (folder / MANIFEST_NAME).is_file() else "started" if folder.is_dir() else "to do"
        rows.append([stage.name, str(folder), state])
    print_table(Table(("stage", "folder", "state"), rows, title=f"malmoi {verb} {recipe.name}"), console)
    for line in plan_sizes(recipe):
        console.print(line)


def plan_sizes(recipe: Recipe) -> list[str]:
    """What a run would read and train, as far as recipe and input files tell."""
    from corpus.reading.units import total_bytes

    texts = given_inputs(recipe)
    size = total_bytes(texts) / 1e6
    settings = recipe.pretrain
    tokens = settings.steps * settings.global_batch * settings.sequence_length
    sample = ", and the embedded sample" if recipe.uses_sample else ""
    jobs = len(recipe.finetune.tasks) * len(recipe.finetune.models) * len(recipe.finetune.seeds)
    return [
        f"raw text: {len(texts)} inputs, {size:,.1f} MB as stored{sample}",
        f"pretraining: {settings.steps:,} steps x {settings.global_batch:,} sequences x "
        f"{settings.sequence_length} tokens = {tokens:,} tokens",
        f"finetuning: {jobs} trainings",
    ]


def show_scores(run: Path) -> None:
    """Print the paper's metrics of every result beside the trivial baseline's."""
    from launch.report.gather import number, paper_metrics, read_scores

    rows = []
    for found in read_scores(run):
        for metric in paper_metrics(found):
            score, trivial = number(found["scores"][metric]), number(found["trivial"][metric])
            first = (found["task"], found["model"], str(found["seed"]), metric)
            rows.append([*first, score, trivial, f"{found['n']:,}"])
    heads = ("task", "model", "seed", "metric", "score", "trivial", "n")
    print_table(Table(heads, rows, numbers=(4, 5, 6), title="Scores"), PlainConsole())
