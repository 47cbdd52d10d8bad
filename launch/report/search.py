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
from launch.report.results import read_json, read_lines
from launch.report.trainings import HYPERPARAMETERS

MAX_ROWS = 10
NOTE_ON_DEV = "Selected on dev and scored on dev: the best score is too high, and more so with more trials."
Study = tuple[dict[str, Any], list[dict[str, Any]]]  # best.json, trials


def search_sections(run: Path) -> list[Section]:
    """One section if the run has searches."""
    studies = read_studies(run)
    if not studies:
        return []
    blocks: list[Block] = [search_table(studies)]
    if any(best["selected_on"] == "dev" for best, _ in studies):
        blocks.append(Text(NOTE_ON_DEV, "warning"))
    return [Section("Search", [*blocks, *(_best_trials(*study) for study in studies)])]


def read_studies(run: Path) -> list[Study]:
    """Every search of a run with its trials so far, tasks in the paper's order."""
    from finetune.task_names import sort_key

    paths = sorted((run / SEARCH_FOLDER).glob("*/*/best.json"))
    studies = [(read_json(path), read_lines(path.with_name("trials.jsonl"))) for path in paths]
    return sorted((study for study in studies if study[1]), key=lambda study: sort_key(study[0]["task"]))


def search_table(studies: Sequence[Study], title: str = "") -> Table:
    """A row for each study: what was tried, and the best values."""
    rows = [
        [study["task"], study["model"], study["search"]["method"], f"{study['trials']} of {study['search']['size']}",
         study["metric"], number(study["best"]["score"] if study["best"] else None), study["scored_on"],
         _list_values(study["best"]["values"]) if study["best"] else "–", duration(study["seconds"])]
        for study, _ in studies
    ]  # fmt: skip
    heads = ["task", "model", "method", "trials", "metric", "best", "selected on", "values", "time"]
    return Table(heads, rows, numbers=(3, 5, 8), title=title)


def _list_values(values: Mapping[str, Any]) -> str:
    """``learning rate 3e-05, batch size 16``."""
    return ", ".join(f"{HYPERPARAMETERS.get(name, name)} {_short(value)}" for name, value in values.items())


def _short(value: Any) -> str:
    """A setting in few characters: ``3e-05``, ``16``, ``swa``."""
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def _best_trials(study: Mapping[str, Any], trials: Sequence[dict[str, Any]]) -> Table:
    names = list(study["search"]["space"])
    scored = [trial for trial in trials if trial["score"] is not None]
    scored.sort(key=lambda trial: (trial["state"] != "complete", -trial["score"], trial["number"]))
    rows = [
        [str(trial["number"]), number(trial["score"]), *(_short(trial["values"][name]) for name in names),
         trial["state"], duration(trial["seconds"])]
        for trial in scored[:MAX_ROWS]
    ]  # fmt: skip
    heads = ["trial", study["metric"], *(HYPERPARAMETERS.get(name, name) for name in names), "state", "time"]
    numbers = (*range(2 + len(names)), len(heads) - 1)
    states = ", ".join(f"{study[state]} {state}" for state in ("complete", "failed") if study[state])
    title = f"{study['task']}, {study['model']}: the best {len(rows)} of {len(trials)} trials ({states})"
    return Table(heads, rows, numbers=numbers, title=title, folded=True)
