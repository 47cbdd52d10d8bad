"""The jobs of a run (tasks x models x settings x seeds), their folders, the names of settings, and existing results.

The settings that were trained first are in ``<task>/<model>/seed-1/``, others in ``<task>/<model>/lr-1e-05/seed-1/``,
named after what differs from the first, or in finetune.settings. Results record the settings behind a name, so a later
command with other settings adds results and changes none.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from corpus.documents.atomic_files import atomic_write
from corpus.documents.errors import BadInput
from corpus.documents.locks import hold_lock
from finetune.config import FinetuneConfig
from finetune.data.files import read_json
from finetune.task_names import sort_key

PREDICTIONS_NAME, SCORES_NAME = "predictions.jsonl", "scores.json"
NAMES_PREFIX = ".names"
FAILED_NAME = "failed.json"  # in the folder of a job on a cluster: why it has no result
RESULTS = ("*/*/seed-*/scores.json", "*/*/*/seed-*/scores.json")
LONGEST_NAME = 60  # characters of a settings folder
Recipe = Mapping[str, Any]  # as ``fingerprint.deciding``


class NamedRecipe(NamedTuple):
    """The name of some settings of a task."""

    task: str
    name: str
    recipe: Recipe


@dataclass(frozen=True, slots=True)
class Job:
    """What to train: a task, an encoder by its name in the results and its folder or Hub name, and a seed.

    ``settings`` names the folder of its settings, empty for the first ones; ``config`` holds them.
    """

    task: str
    model: str
    encoder: str
    seed: int
    config: FinetuneConfig = field(compare=False)
    settings: str = ""

    def folder(self, out: Path) -> Path:
        """``<task>/<model>/<settings>/seed-<n>``; a path or Hub name becomes one folder name."""
        return out / self.task / folder_name(self.model) / self.settings / f"seed-{self.seed}"

    def __str__(self) -> str:
        return ", ".join(part for part in (self.task, self.model, self.settings, f"seed {self.seed}") if part)


def folder_name(name: str) -> str:
    """One folder name from a path, a Hub name or settings."""
    return re.sub(r"[^\w.]+", "-", name).strip("-.")


def plan(config: FinetuneConfig, models: Mapping[str, str]) -> list[Job]:
    """All jobs, long ones first, so that none is left over at the end. ``BadInput`` if two have the same folder."""
    configs = {settings: config.with_settings(settings) for settings in ("", *config.settings)}
    jobs = [
        Job(task, name, str(models[name]), seed, own, settings)
        for task in sorted(config.tasks, key=sort_key, reverse=True)
        for name in config.models  # above: in the paper the long ones come last
        for settings, own in configs.items()
        for seed in config.seeds
    ]
    if len({job.folder(Path()) for job in jobs}) < len(jobs):
        raise BadInput(f"two of the models {', '.join(config.models)} have the same name on disk; rename one")
    if taken := {folder_name(name) for name in config.ensembles} & {folder_name(name) for name in config.models}:
        raise BadInput(f"finetune.ensembles: {min(taken)} is the name of a model on disk; rename the ensemble")
    return jobs


def read_results(out: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Every result below ``out`` with its file; results of older releases are skipped."""
    for path in sorted(path for pattern in RESULTS for path in out.glob(pattern)):
        result = read_json(path)
        if isinstance(result, dict) and isinstance(result.get("recipe"), dict):
            yield path, result


def name_settings(
    jobs: Sequence[Job], recipes: Mapping[Job, Recipe], out: Path, given: Iterable[NamedRecipe] = ()
) -> tuple[list[Job], list[NamedRecipe]]:
    """The jobs in the folders of their settings, and the names of these settings.

    Settings that have results, or a name ``given`` by another command, keep their name. ``BadInput`` if
    ``finetune.settings`` uses a name that is taken.
    """
    known: dict[str, dict[str, Recipe]] = {}
    single = (result for _, result in read_results(out) if "members" not in result)  # ensembles have no settings
    there = (NamedRecipe(result["task"], result["settings"], result["recipe"]) for result in single)
    for task, name, recipe in chain(there, given):
        known.setdefault(task, {}).setdefault(name, recipe)
    named: dict[Job, Job] = {}  # as it was to as it is called
    for job in jobs:
        taken = known.setdefault(job.task, {})
        name = _name_of(job, recipes[job], taken)
        taken.setdefault(name, recipes[job])
        named[job] = replace(job, settings=name)
    used = dict.fromkeys((job.task, job.settings) for job in named.values())
    return list(dict.fromkeys(named.values())), [NamedRecipe(task, name, known[task][name]) for task, name in used]


def _name_of(job: Job, recipe: Recipe, taken: Mapping[str, Recipe]) -> str:
    if same := [name for name, other in taken.items() if other == recipe]:
        return same[0]
    if job.settings not in taken:
        return job.settings
    if job.settings:
        raise BadInput(
            f"finetune.settings.{job.settings}: {job.task} has results of other settings under this name "
            f"({_difference(taken[job.settings], recipe)} now); give these another name, or delete those"
        )
    name = folder_name(_difference(taken[""], recipe))
    short = hashlib.blake2b(json.dumps(recipe, sort_keys=True).encode(), digest_size=4).hexdigest()
    return name if len(name) <= LONGEST_NAME and name not in taken else f"{name[:LONGEST_NAME].rstrip('-.')}-{short}"


def _difference(old: Recipe, new: Recipe) -> str:
    """``lr 1e-05, data 3f2a91c0``: the new values of what differs."""
    before, after = _flat(old), _flat(new)
    changed = [key for key in sorted(before.keys() | after.keys()) if before.get(key) != after.get(key)]
    return ", ".join(f"{key} {after.get(key, 'default')}" for key in changed)


def _flat(recipe: Recipe) -> dict[str, str]:
    """Overrides by name, and one short digest of the data."""
    flat = {key: value for key, value in recipe.items() if key not in ("overrides", "data")}
    flat |= recipe.get("overrides", {})
    data = json.dumps(recipe.get("data"), sort_keys=True).encode()
    plain = {key: value if isinstance(value, str) else json.dumps(value, sort_keys=True) for key, value in flat.items()}
    plain = {key: value.replace("e+", "e") for key, value in plain.items()}  # in a folder's name 1e+25 became 1e-25
    return {**plain, "data": hashlib.blake2b(data, digest_size=4).hexdigest()}


@contextmanager
def named(jobs: Sequence[Job], recipes: Mapping[Job, Recipe], out: Path) -> Iterator[list[Job]]:
    """The jobs as ``name_settings`` names them; until the end of the block no other command uses these names for other
    settings. ``BadInput`` as there.

    ```
    .names.lock             held while a command reads all names and adds its own
    .names-<digest>.json    the names of a running command
    .names-<digest>.lock    held as long as that command runs; names of a killed command are dropped
    ```
    """
    out.mkdir(parents=True, exist_ok=True)
    own = out / f"{NAMES_PREFIX}-{uuid4().hex}.json"
    with hold_lock(own.with_suffix(".lock")):
        try:
            with hold_lock(out / f"{NAMES_PREFIX}.lock", waits=True):
                of_others = (NamedRecipe(*given) for path in _alive(out) for given in read_json(path))
                found, given = name_settings(jobs, recipes, out, of_others)
                atomic_write(own, json.dumps(given, ensure_ascii=False))
            yield found
        finally:
            with hold_lock(out / f"{NAMES_PREFIX}.lock", waits=True):  # nobody is reading
                _forget(own)


def _alive(out: Path) -> Iterator[Path]:
    """Names of running commands; those of killed commands are removed."""
    for path in sorted(out.glob(f"{NAMES_PREFIX}-*.json")):
        with hold_lock(path.with_suffix(".lock")) as is_dead:
            if is_dead:
                _forget(path)
            else:
                yield path


def _forget(path: Path) -> None:
    for doomed in (path, path.with_suffix(".lock")):
        doomed.unlink(missing_ok=True)
