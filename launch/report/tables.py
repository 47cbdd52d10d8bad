"""The tables of an appendix: tasks by models beside Table 36, settings beside the recipe's own, hyperparameters, cost.

A cell is the mean over seeds ± their sample standard deviation, its 95 % interval below. A number that was chosen on
what it is reported on says so in its row. Tasks are never averaged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean
from typing import Any

from launch.numbers import count, duration, number
from launch.report.blocks import Block, Table, Text
from launch.report.compare import LAST_WEIGHTS, Group, weights_of
from launch.report.gather import PAPER_MODEL, Result, paper_metrics, settings_of, trivial_of

RECIPE = "as the recipe says"  # settings without a name
PAPER_HEAD = f"{PAPER_MODEL}, Table 36"
MOST_NAMED = 4
HYPERPARAMETERS = {  # what every training has, as it is called here
    "lr": "rate", "epochs": "epochs", "batch_size": "batch", "warmup_share": "warm-up", "weight_decay": "decay",
    "max_tokens": "tokens",
}  # fmt: skip
SEARCHED = {
    "train": "hyperparameters searched on a part of train",
    "dev": "hyperparameters searched on the scored split",
}
DEVICES = {"cpu": "CPU hours, a thread each"}  # others: GPU hours


def chosen_on(found: Result) -> str:
    """What was chosen by which score, of weights and hyperparameters, or a dash; nothing chosen is the normal case."""
    weights, searched = weights_of(found), SEARCHED.get(found.get("searched_on") or "")
    return "; ".join([*([weights] if weights != LAST_WEIGHTS else []), *([searched] if searched else [])]) or "–"


def name_of(group: Group) -> str:
    """The group's name; that of an ensemble says of how many."""
    members = group.first.get("members")
    return f"{group.name} (ensemble of {len(members)})" if members else group.name


def cell_of(group: Group, metric: str, *, counts_seeds: bool = False) -> str:
    """``85.18 ± 0.31``, and below it its interval and, if asked for, how many seeds it has."""
    interval = group.interval(metric)
    parts = [*([f"{interval[0]:.1f} to {interval[1]:.1f}"] if interval else [])]
    parts += [f"{len(group.results)} seeds"] if counts_seeds and len(group.results) > 1 else []
    return "\n".join([group.cell(metric), *([", ".join(parts)] if parts else [])])


def own_groups(groups: Sequence[Group]) -> list[Group]:
    """Those under the recipe's own settings; of a task and model that has none, all."""
    having = {(group.task, group.first["model"]) for group in groups if not settings_of(group.first)}
    return [g for g in groups if not settings_of(g.first) or (g.task, g.first["model"]) not in having]


def by_models(groups: Sequence[Group]) -> Table:
    """Task and metric by model, the settings being the recipe's own; beside the official dev files Table 36."""
    models = list(dict.fromkeys(map(name_of, groups)))
    is_official = any(group.first["is_official_dev"] for group in groups)
    differ = len({len(group.results) for group in groups} - {1}) > 1
    has_choice = any(chosen_on(found) != "–" for group in groups for found in group.results)
    rows = []
    for (task, _), alike in _rows_of(groups).items():
        first = alike[0].first
        for metric in paper_metrics(first):
            cells = [[cell_of(g, metric, counts_seeds=differ) for g in alike if name_of(g) == name] for name in models]
            paper = number(first["paper_dev"][PAPER_MODEL].get(metric) if first["is_official_dev"] else None)
            rows.append([
                task, metric, *("\n".join(cell) or "–" for cell in cells), number(trivial_of(first, metric)),
                *([paper] if is_official else []), *([_choices(alike)] if has_choice else []),
            ])  # fmt: skip
    heads = ["task", "metric", *models, "trivial", *([PAPER_HEAD] if is_official else [])]
    title = f"Tasks by models{over_seeds(groups)}"
    return Table([*heads, *(["chosen by"] if has_choice else [])], rows, numbers=range(2, len(heads)), title=title)


def over_seeds(groups: Sequence[Group]) -> str:
    """``, mean ± standard deviation over 1 or 3 seeds``; nothing where all have one."""
    seeds = sorted({len(group.results) for group in groups})
    if seeds in ([], [1]):
        return ""
    named = " or ".join(map(str, seeds)) if len(seeds) < MOST_NAMED else f"{seeds[0]} to {seeds[-1]}"
    return f", mean ± standard deviation over {named} seeds"


def _rows_of(groups: Iterable[Group]) -> dict[tuple[str, str], list[Group]]:
    """Groups by task and examples: other examples are another row."""
    rows: dict[tuple[str, str], list[Group]] = {}
    for group in groups:
        rows.setdefault((group.task, group.first["split"]), []).append(group)
    return rows


def _choices(groups: Sequence[Group]) -> str:
    """What was chosen in a row, by model where they differ."""
    found = {name_of(group): "; ".join(dict.fromkeys(map(chosen_on, group.results))) for group in groups}
    if len(set(found.values())) == 1:
        return next(iter(found.values()))
    return "\n".join(f"{name}: {said}" for name, said in found.items() if said != "–")


def by_settings(groups: Sequence[Group]) -> list[Table]:
    """The headline of each task and model by settings, with the difference from the recipe's own below it; none where
    there are no others."""
    names = list(dict.fromkeys(settings_of(group.first) for group in groups))
    if names in ([], [""]):
        return []
    by_model: dict[tuple[str, ...], dict[str, list[Group]]] = {}
    for group in groups:
        first = group.first
        who = (first["task"], first["split"], first["model"])
        by_model.setdefault(who, {}).setdefault(settings_of(first), []).append(group)
    several = len({model for _, _, model in by_model}) > 1
    rows = []
    for (task, _, model), found in by_model.items():
        if "" not in found or len(found) == 1:
            continue  # nothing to compare with, an ensemble among them
        metric = next(iter(found.values()))[0].first["headline"]
        own = found[""]
        cells = ["\n".join(_beside(group, own, metric) for group in found.get(name, [])) or "–" for name in names]
        rows.append([task, *([model] if several else []), metric, *cells])
    heads = ["task", *(["model"] if several else []), "metric", *(name or RECIPE for name in names)]
    numbers = range(len(heads) - len(names), len(heads))
    return [Table(heads, rows, numbers, title=f"Settings{over_seeds(groups)}")] if rows else []


def _beside(group: Group, own: Sequence[Group], metric: str) -> str:
    value, base = group.mean(metric), own[0].mean(metric) if len(own) == 1 else None
    chosen = "; ".join(dict.fromkeys(map(chosen_on, group.results)))
    notes = [*([f"{value - base:+.2f}"] if own != [group] and None not in (value, base) else [])]  # type: ignore[operator]
    return "\n".join([group.cell(metric), *notes, *([chosen] if chosen != "–" else [])])


def hyperparameters(scores: Sequence[Result]) -> list[Block]:
    """One row for all trainings of a task that were done alike."""
    rows_by: dict[tuple[str, tuple[tuple[str, Any], ...]], list[Result]] = {}
    trained = [found for found in scores if found.get("hyperparameters")]
    for found in trained:
        rows_by.setdefault((found["task"], tuple(_decided_by(found).items())), []).append(found)
    values_of = [dict(items) for _, items in rows_by]
    others = dict.fromkeys(key for values in values_of for key in values if key not in HYPERPARAMETERS)
    shown = [key for key in others if len({values.get(key) for values in values_of}) > 1]
    has_names = len({task for task, _ in rows_by}) < len(rows_by)
    rows = []
    for (task, items), alike in rows_by.items():
        values = dict(items)
        whole = len(alike) == sum(found["task"] == task for found in trained)
        who = ["all" if whole else _names(alike)] if has_names else []
        rows.append([task, *who, *(_value(values.get(key)) for key in (*HYPERPARAMETERS, *shown))])
    heads = ["task", *(["trainings"] if has_names else []), *HYPERPARAMETERS.values()]
    numbers = range(len(heads) - len(HYPERPARAMETERS), len(heads))
    shared = {key: values_of[0][key] for key in others if key not in shown}
    note = "; ".join(f"{key.replace('_', ' ')} {_value(value)}" for key, value in shared.items())
    heads += [key.replace("_", " ") for key in shown]
    notes = [Text(f"All trainings: {note}.", "note")] if note else []
    return [Table(heads, rows, numbers=numbers, title="Hyperparameters"), *notes] if rows else []


def _decided_by(found: Result) -> dict[str, Any]:
    """Hyperparameters, and what else of the recipe differs from the defaults, as text where it is not one value."""
    recipe = {key: value for key, value in found.get("recipe", {}).items() if key not in ("data", "overrides", "start")}
    values = {**found["hyperparameters"], **recipe}
    return {key: json.dumps(value) if isinstance(value, dict | list) else value for key, value in values.items()}


def _names(results: Sequence[Result]) -> str:
    """Who was trained so: models where all settings were, else both."""
    names = list(dict.fromkeys(", ".join(filter(None, (r["model"], settings_of(r)))) for r in results))
    models, settings = (list(dict.fromkeys(map(of, results))) for of in (lambda r: r["model"], settings_of))
    if len(names) > 1 and len(names) == len(models) * len(settings):  # each with each
        parts = [_some(models), *([_some([name or RECIPE for name in settings])] if settings != [""] else [])]
        return "; ".join(parts)
    return _some(names)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _value(value: Any) -> str:
    return "–" if value is None else f"{value:g}".replace("e-0", "e-") if isinstance(value, float) else str(value)


def cost(scores: Sequence[Result]) -> list[Table]:
    """Time of the trainings of each task and model on each kind of device, peak memory where it is known."""
    trained = [found for found in scores if not found.get("members") and "method" not in found]
    timed = [found for found in trained if found.get("seconds") is not None]
    kinds = dict.fromkeys("cpu" if found.get("device", "cpu") == "cpu" else "GPU" for found in timed)
    return [
        _cost_on(kind, [f for f in timed if (f.get("device", "cpu") == "cpu") == (kind == "cpu")]) for kind in kinds
    ]


def _cost_on(kind: str, timed: Sequence[Result]) -> Table:
    tasks, models = (list(dict.fromkeys(found[key] for found in timed)) for key in ("task", "model"))

    def cells(wanted: Callable[[Result], bool]) -> list[str]:
        meant = [found for found in timed if wanted(found)]
        return [
            *(_time([f for f in meant if f["model"] == m]) for m in models),
            *([_time(meant)] if len(models) > 1 else []),
        ]

    rows = [[task, *cells(lambda found, task=task: found["task"] == task)] for task in tasks]  # type: ignore[misc]
    rows += [["all", *cells(lambda found: True)]] if len(tasks) > 1 else []
    heads = ["task", *models, *(["all"] if len(models) > 1 else [])]
    hours = sum(found["seconds"] for found in timed) / 3600
    took = number(hours, 2 if hours >= 0.1 else 4)
    title = f"Cost: {took} {DEVICES.get(kind, 'GPU hours')}, {count(len(timed))} trainings with their scoring"
    return Table(heads, rows, numbers=range(1, len(heads)), title=title)


def _time(results: Sequence[Result]) -> str:
    if not results:
        return "–"
    seconds = [found["seconds"] for found in results]
    several = f"\n{len(seconds)} × {duration(fmean(seconds))}" if len(seconds) > 1 else ""
    memory = [found["peak_mib"] for found in results if found.get("peak_mib")]
    return duration(sum(seconds)) + several + (f"\n{count(max(memory))} MiB" if memory else "")
