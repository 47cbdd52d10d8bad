"""How the models were trained: hyperparameters, cost and searches.

The score of a trial of a search is on the examples that select the best settings, not on dev unless the line says so.
The best settings have their own results, called ``best-of-search``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from finetune.task_names import sort_key
from launch.numbers import count, duration, group_by, number
from launch.recipe import SEARCH_FOLDER
from launch.report.blocks import NOTES, Block, Section, Table, Text
from launch.report.results import Result, name_of, read_json

MAX_NAMES = 4
HYPERPARAMETERS = {  # of every training, with their column heads
    "lr": "learning rate", "epochs": "epochs", "batch_size": "batch size", "warmup_share": "warmup",
    "weight_decay": "weight decay", "max_tokens": "max tokens",
}  # fmt: skip
Study = dict[str, Any]  # the content of a best.json


def hyperparameters(scores: Sequence[Result]) -> list[Block]:
    """One row for all trainings of a task with the same settings."""
    trained = [result for result in scores if result.get("hyperparameters")]
    rows_by = group_by(trained, lambda result: (result["task"], tuple(_all_settings(result).items())))
    values_of = [dict(items) for _, items in rows_by]
    others = dict.fromkeys(key for values in values_of for key in values if key not in HYPERPARAMETERS)
    varying = [key for key in others if len({values.get(key) for values in values_of}) > 1]
    has_names = len({task for task, _ in rows_by}) < len(rows_by)
    rows = []
    for (task, _), alike in rows_by.items():
        values = _all_settings(alike[0])
        is_all = len(alike) == sum(result["task"] == task for result in trained)
        models = list(dict.fromkeys(map(name_of, alike)))
        more = f" and {len(models) - MAX_NAMES} more" if len(models) > MAX_NAMES else ""
        names = "all" if is_all else ", ".join(models[:MAX_NAMES]) + more
        rows.append([task, *[names] * has_names, *(_value(values.get(key)) for key in (*HYPERPARAMETERS, *varying))])
    heads = ["task", *(["trainings"] if has_names else []), *HYPERPARAMETERS.values()]
    numbers = range(len(heads) - len(HYPERPARAMETERS), len(heads))
    same = [f"{key.replace('_', ' ')} {_value(values_of[0][key])}" for key in others if key not in varying]
    heads += [key.replace("_", " ") for key in varying]
    notes = [Text(f"All trainings: {'; '.join(same)}.", "note")] if same else []
    return [Table(heads, rows, numbers=numbers, title="Hyperparameters"), *notes] if rows else []


def _all_settings(result: Result) -> dict[str, Any]:
    """Hyperparameters and other settings of the recipe that differ from the defaults, nested ones as JSON."""
    others = {k: v for k, v in result.get("recipe", {}).items() if k not in ("data", "overrides", "start", "own")}
    custom = {"custom_task": result["recipe"]["own"]} if "own" in result.get("recipe", {}) else {}
    values = {**result["hyperparameters"], **others, **custom}
    return {k: json.dumps(v, ensure_ascii=False) if isinstance(v, dict | list) else v for k, v in values.items()}


def _value(value: Any) -> str:
    return "–" if value is None else f"{value:g}".replace("e-0", "e-") if isinstance(value, float) else str(value)


def costs(scores: Sequence[Result]) -> list[Block]:
    """For CPUs and GPUs: time of the trainings of each task and model, and peak memory if it is known."""
    timed = [r for r in scores if r.get("seconds") is not None and not r.get("members") and "method" not in r]
    units = {False: "GPU hours", True: "CPU hours (one thread each)"}
    by_unit = group_by(timed, lambda result: result.get("device", "cpu") == "cpu")
    return [_cost_table(unit, by_unit[is_cpu]) for is_cpu, unit in units.items() if is_cpu in by_unit]


def _cost_table(unit: str, timed: Sequence[Result]) -> Table:
    rows = []
    for (task, model), results in group_by(timed, lambda result: (result["task"], result["model"])).items():
        seconds = [result["seconds"] for result in results]
        memory = max(result.get("peak_mib") or 0 for result in results)
        peak = f"{count(memory)} MiB" if memory else "–"
        rows.append([task, model, count(len(results)), duration(sum(seconds)), duration(fmean(seconds)), peak])
    hours = sum(result["seconds"] for result in timed) / 3600
    title = f"Cost: {number(hours, 2 if hours >= 0.1 else 4)} {unit}, {count(len(timed))} trainings including scoring"
    heads = ["task", "model", "trainings", "time", "each", "peak memory"]
    return Table(heads, rows, numbers=range(2, 6), title=title)


def search_sections(run: Path) -> list[Section]:
    """One section if the run has searches."""
    studies = read_studies(run)
    if not studies:
        return []
    blocks: list[Block] = [search_table(studies)]
    if any(study["selected_on"] == "dev" for study in studies):
        blocks.append(Text(NOTES["search"], "warning"))
    return [Section("Search", blocks)]


def read_studies(run: Path) -> list[Study]:
    """Every search of a run that has trials, tasks in the paper's order; its trials.jsonl has all of them."""
    studies = [read_json(path) for path in sorted((run / SEARCH_FOLDER).glob("*/*/best.json"))]
    return sorted((study for study in studies if study["trials"]), key=lambda study: sort_key(study["task"]))


def search_table(studies: Sequence[Study], title: str = "") -> Table:
    """A row for each study: what was tried, and the best values."""
    rows = []
    for study in studies:
        best, search = study["best"] or {"score": None, "values": {}}, study["search"]
        values = ", ".join(f"{HYPERPARAMETERS.get(key, key)} {_value(value)}" for key, value in best["values"].items())
        rows.append([
            study["task"], study["model"], search["method"], f"{study['trials']} of {search['size']}", study["metric"],
            number(best["score"]), study["scored_on"], values or "–", duration(study["seconds"]),
        ])  # fmt: skip
    heads = ["task", "model", "method", "trials", "metric", "best", "selected on", "values", "time"]
    return Table(heads, rows, numbers=(3, 5, 8), title=title)
