"""The section "Search": what was tried, and which values scored well.

The score of a trial is on the examples that select the best settings, not on dev unless the line says so. The best
settings have their own results, called ``best-of-search``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from launch.numbers import duration, number
from launch.recipe import SEARCH_FOLDER
from launch.report.blocks import Block, Section, Table, Text
from launch.report.results import read_json
from launch.report.trainings import HYPERPARAMETERS

NOTE_ON_DEV = "Selected on dev and scored on dev: the best score is too high, and more so with more trials."
Study = dict[str, Any]  # the content of a best.json


def search_sections(run: Path) -> list[Section]:
    """One section if the run has searches."""
    studies = read_studies(run)
    if not studies:
        return []
    blocks: list[Block] = [search_table(studies)]
    if any(study["selected_on"] == "dev" for study in studies):
        blocks.append(Text(NOTE_ON_DEV, "warning"))
    return [Section("Search", blocks)]


def read_studies(run: Path) -> list[Study]:
    """Every search of a run that has trials, tasks in the paper's order; its trials.jsonl has all of them."""
    from finetune.task_names import sort_key

    studies = [read_json(path) for path in sorted((run / SEARCH_FOLDER).glob("*/*/best.json"))]
    return sorted((study for study in studies if study["trials"]), key=lambda study: sort_key(study["task"]))


def search_table(studies: Sequence[Study], title: str = "") -> Table:
    """A row for each study: what was tried, and the best values."""
    rows = [
        [study["task"], study["model"], study["search"]["method"], f"{study['trials']} of {study['search']['size']}",
         study["metric"], number(study["best"]["score"] if study["best"] else None), study["scored_on"],
         _list_values(study["best"]["values"]) if study["best"] else "–", duration(study["seconds"])]
        for study in studies
    ]  # fmt: skip
    heads = ["task", "model", "method", "trials", "metric", "best", "selected on", "values", "time"]
    return Table(heads, rows, numbers=(3, 5, 8), title=title)


def _list_values(values: Mapping[str, Any]) -> str:
    """``learning rate 3e-05, batch size 16``."""
    return ", ".join(f"{HYPERPARAMETERS.get(name, name)} {_short(value)}" for name, value in values.items())


def _short(value: Any) -> str:
    """A setting in few characters: ``3e-05``, ``16``, ``swa``."""
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
