"""What ``--dry-run`` prints: what would stop the run, its stages with their cost, what the recipe changes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from launch.checks.estimate import Cost, Machine, estimate, planned_tokens, say_bytes, say_duration, text_bytes
from launch.console import PlainConsole, Table, print_table
from launch.manifest import MANIFEST_NAME
from launch.pipeline import Stage
from launch.recipe import Recipe


def show_plan(
    verb: str, stages: Sequence[Stage], recipe: Recipe, run: Path, machine: Machine, problems: Sequence[str]
) -> None:
    """Print problems, stages, sizes and the settings that differ from the paper's; write nothing."""
    console = PlainConsole(soft_wrap=True)
    if problems:
        console.print(f"{len(problems)} {'thing' if len(problems) == 1 else 'things'} would stop this run:")
        for problem in problems:
            console.print(f"  ✗ {problem}")
    else:
        console.print("Nothing would stop this run.")
    rows = []
    for stage in stages:
        folder = run / stage.name
        state = "complete" if (folder / MANIFEST_NAME).is_file() else "started" if folder.is_dir() else "to do"
        cost = Cost() if state == "complete" else estimate(stage.name, recipe, machine)
        sizes = (f"~{say_bytes(size)}" if size else "–" for size in (cost.disk, cost.memory))
        rows.append([stage.name, state, f"~{say_duration(cost.seconds)}" if cost.seconds else "–", *sizes])
    heads = ("stage", "state", "time", "disk", "memory")
    print_table(Table(heads, rows, numbers=(2, 3, 4), title=f"malmoi {verb} {recipe.name} → {run}"), console)
    for line in _sizes(stages, recipe, machine):
        console.print(line)
    changed = yaml.safe_dump(differing(recipe), allow_unicode=True, sort_keys=False, default_flow_style=None)
    console.print(f"\nWhat differs from the defaults (the paper's values):\n{changed.rstrip()}")


def _sizes(stages: Sequence[Stage], recipe: Recipe, machine: Machine) -> list[str]:
    """What the stages would read and train, and on what, as far as recipe and input files tell."""
    text, settings = text_bytes(recipe), recipe.pretrain
    jobs = len(recipe.finetune.tasks) * len(recipe.finetune.models) * len(recipe.finetune.seeds)
    device = f"{machine.devices} GPU" if machine.gpu else f"{machine.cores} cores, no GPU"
    lines = {
        "corpus": f"text: {'not known' if text is None else f'{text / 1e6:,.1f} MB unpacked'}",
        "pretrain": f"pretraining: {settings.steps:,} steps x {settings.global_batch:,} sequences x "
        f"{settings.rows.sequence_length} tokens = {planned_tokens(recipe):,} tokens",
        "finetune": f"finetuning: {jobs} trainings",
    }
    names = {stage.name for stage in stages}
    return [
        *(line for stage, line in lines.items() if stage in names),
        f"estimated for this machine ({device}, {say_bytes(machine.memory)} of memory), at best within a factor of two",
    ]


def differing(values: BaseModel, defaults: BaseModel | None = None) -> dict[str, Any]:
    """The keys that differ from the defaults, as plain data; number of processes and name are the run's own."""
    found: dict[str, Any] = {}
    plain = values.model_dump(mode="json")
    for key, field in type(values).model_fields.items():
        value = getattr(values, key)
        default = getattr(defaults, key) if defaults else field.get_default(call_default_factory=True)
        if isinstance(value, BaseModel) and isinstance(default, BaseModel):
            if inner := differing(value, default):
                found[key] = inner
        elif value != default:
            is_section = isinstance(value, dict) and all(isinstance(inner, BaseModel) for inner in value.values())
            found[key] = {name: differing(inner) for name, inner in value.items()} if is_section else plain[key]
    return found
