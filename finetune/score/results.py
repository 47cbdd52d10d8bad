"""Results for a comparison: one task and model with all its seeds, and their predictions.

The seeds of a model must have been trained and scored alike; differences are refused before anything is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from corpus.documents.errors import BadInput
from finetune.data.files import find_file, read_json
from finetune.examples import Row
from finetune.queue.jobs import PREDICTIONS_NAME, SCORES_NAME
from finetune.registry import find_task
from finetune.score.scores import in_nfc, read_rows
from finetune.task import Task
from finetune.task_names import sort_key

DEFAULTS = {"revision": 1}  # of results that do not say
OWN_MODEL = "model"  # the model of the run comes first


@dataclass(frozen=True, slots=True)
class Trained:
    """One task and model, with its settings: for each seed the folder (or predictions file) and its ``scores.json``."""

    task: str
    name: str  # ``model``, or ``model, slow`` with named settings
    results: tuple[tuple[Path, dict[str, Any]], ...]

    @property
    def first(self) -> dict[str, Any]:
        return self.results[0][1]

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(int(result["seed"]) for _, result in self.results)

    @property
    def is_selected(self) -> bool:
        """Whether weights or settings were selected by their score on the scored examples."""
        return any(result.get("selected") or result.get("searched_on") == "dev" for _, result in self.results)


def find_trained(folder: Path) -> list[Trained]:
    """All results below a folder, tasks in the paper's order, the run's own model first.

    ``BadInput`` if there are none, or the seeds of one model were not trained alike.
    """
    home = folder / "finetune" if (folder / "finetune").is_dir() else folder
    found: dict[tuple[str, str], list[tuple[Path, dict[str, Any]]]] = {}
    for path in sorted(home.rglob(SCORES_NAME)):
        result = read_json(path)
        if not isinstance(result, dict) or not {"task", "model", "seed", "protocol", "split"} <= result.keys():
            raise BadInput(f"{path}: not the scores.json of a result; delete {path.parent} and run again")
        name = ", ".join(filter(None, (result["model"], result.get("settings"))))
        found.setdefault((result["task"], name), []).append((path.parent, result))
    if not found:
        raise BadInput(f"{folder}: no results (scores.json) in it; give the folder of a run that was fine-tuned")
    trained = [
        Trained(task, name, tuple(sorted(results, key=lambda item: int(item[1]["seed"]))))
        for (task, name), results in found.items()
    ]
    for one in trained:
        _refuse_mixed(one)
    return sorted(trained, key=lambda one: (sort_key(one.task), one.first["model"] != OWN_MODEL, one.name))


def trained_of_file(path: Path, task: str) -> Trained:
    """A predictions file with golds, as a model with one seed and no further information."""
    return Trained(find_task(task).name, str(path), ((path, {"seed": 0, "protocol": None, "split": None}),))


def _refuse_mixed(one: Trained) -> None:
    for key in ("seed", "protocol", "split", "encoder", "recipe", "revision"):
        values = [result.get(key, DEFAULTS.get(key)) for _, result in one.results]
        if key == "seed" and len(set(map(str, values))) < len(values):
            raise BadInput(
                f"{one.results[0][0]}: {one.task} of {one.name} has a seed twice; give one folder of results"
            )
        if key != "seed" and any(value != values[0] for value in values):
            raise BadInput(
                f"{one.results[0][0].parent}: the seeds of {one.name} on {one.task} differ in {key}; fine-tune all of "
                "them again with one recipe, or delete the old ones"
            )


@dataclass(frozen=True, slots=True)
class Loaded:
    """The predictions of a model: rows of each training seed, sorted by guid."""

    trained: Trained
    task: Task
    rows: dict[int, list[Row]]

    @property
    def guids(self) -> list[str]:
        return [row.guid for row in next(iter(self.rows.values()))]


def load(trained: Trained) -> Loaded:
    """Read all predictions; ``BadInput`` for a missing or broken file, or seeds scored on other examples."""
    place = trained.results[0][0]
    task = find_task(str(place) if trained.first.get("own") else trained.task)
    places = {seed: place for seed, (place, _) in zip(trained.seeds, trained.results, strict=True)}
    files = {seed: place if place.is_file() else place / PREDICTIONS_NAME for seed, place in places.items()}
    rows = {s: sorted(in_nfc(read_rows(file, task))[0], key=lambda row: row.guid) for s, file in files.items()}
    loaded = Loaded(trained, task, rows)
    for seed, own in rows.items():
        _refuse_others(rows[trained.seeds[0]], own, f"{trained.name}, seed {trained.seeds[0]}", f"seed {seed}", task)
    return loaded


def refuse_incomparable(a: Loaded, b: Loaded) -> None:
    """``BadInput`` if two models were not scored on the same examples under the same protocol."""
    one, other = a.trained, b.trained
    for key in ("protocol", "split"):
        values = one.first.get(key), other.first.get(key)
        if None not in values and values[0] != values[1]:
            raise BadInput(
                f"{one.task}: {one.name} and {other.name} have another {key} ({values[0]}; {values[1]}), so their "
                "scores do not compare; score both alike"
            )
    first, second = (next(iter(loaded.rows.values())) for loaded in (a, b))
    _refuse_others(first, second, one.name, other.name, a.task)


def _refuse_others(first: Sequence[Row], second: Sequence[Row], one: str, other: str, task: Task) -> None:
    guids = [{row.guid for row in rows} for rows in (first, second)]
    if guids[0] != guids[1]:
        raise BadInput(
            f"{task.name}: {one} and {other} were scored on other examples ({len(guids[0]):,} and {len(guids[1]):,}, "
            f"{len(guids[0] & guids[1]):,} of them the same); score both on the same file"
        )
    if differing := [x.guid for x, y in zip(first, second, strict=True) if x.gold != y.gold]:
        raise BadInput(
            f"{task.name}: {one} and {other} have other golds for {len(differing):,} examples ({differing[0]} is the "
            "first); score both on the same version of the data"
        )


def passages_of(task: Task, data: Path | None) -> Callable[[str], str] | None:
    """Guid to group from the official files below ``data``; None without files, or if guids are enough."""
    if data is None or task.custom is not None or task.group_of_guid is not str:
        return None
    files = [path for name in (task.files.dev, task.files.train) if (path := find_file(data, name)) is not None]
    groups = _groups_of_files(task.name, tuple(files))
    return lambda guid: groups.get(guid, guid)


@lru_cache(maxsize=8)
def _groups_of_files(name: str, files: Iterable[Path]) -> dict[str, str]:
    task = find_task(name)
    return {example.guid: task.group(example) for path in files for example in task.read(path)}
