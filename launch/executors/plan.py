"""The plan of a job, one file that every node reads, and the files by which tasks report failures.

It is written to ``<folder>/engine-<digest>`` next to the unit folders. The digest covers the work, its settings, the
units and the folder, so tasks with other settings never touch these units. A node that cannot see the plan does not
share the file system and reports that. The plan is a pickle, as in any process pool: whoever can write to the run
folder can run code.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pickle
import shutil
import socket
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel

from corpus.documents.atomic_files import atomic_write
from corpus.documents.units import COUNTS_NAME, unit_folder
from launch.errors import LaunchError

PLAN_NAME = "plan.pickle"
FAILURES_NAME, LOGS_NAME = "failures", "logs"


class Plan(NamedTuple):
    """One call of the map; ``missing``: numbers of units; ``directory``: base of relative paths."""

    work: Callable[[Any, Path], dict[str, Any]]
    units: list[Any]
    missing: list[int]
    folder: Path
    directory: Path


class Failure(NamedTuple):
    """Why a unit has no result. ``is_for_user``: the message says what to do; otherwise it names lines of code."""

    number: int
    is_for_user: bool
    message: str


def engine_home(work: Callable[..., Any], units: Sequence[Any], folder: Path) -> Path:
    """Folder of plan and logs for exactly this work on these units in this (absolute) folder.

    Raises:
        LaunchError: ``folder`` already holds units that were made with other settings.
    """
    home = home_of(work, units, folder)
    others = [other for other in folder.glob("engine-*") if other != home]
    if others and finished_units(folder):
        raise LaunchError(f"{folder}: holds units made with other settings or inputs; delete this folder and run again")
    for other in others:
        shutil.rmtree(other)
    return home


def home_of(work: Callable[..., Any], units: Sequence[Any], folder: Path) -> Path:
    """The name of that folder."""
    described = json.dumps([str(folder), describe(work), describe(list(units))], sort_keys=True)
    return folder / f"engine-{hashlib.blake2b(described.encode(), digest_size=8).hexdigest()}"


def describe(value: Any) -> Any:
    """``value`` as JSON that is equal in every process: no addresses, sets sorted, every type named."""
    kind = type(value).__qualname__
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Path | bytes):
        return [kind, str(value)]
    if isinstance(value, dict):
        return [kind, *([describe(key), describe(item)] for key, item in value.items())]
    if isinstance(value, set | frozenset):
        return [kind, *sorted(json.dumps(describe(item), sort_keys=True) for item in value)]
    if isinstance(value, list | tuple):
        return [kind, *map(describe, value)]
    if isinstance(value, partial):
        return [kind, describe(value.func), describe(value.args), describe(value.keywords)]
    if isinstance(value, BaseModel):
        return [kind, describe(dict(value))]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [kind, describe({field.name: getattr(value, field.name) for field in dataclasses.fields(value)})]
    if hasattr(value, "__qualname__"):
        return [value.__module__, value.__qualname__]
    raise TypeError(f"a {type(value).__name__} cannot be part of work for a cluster: it has no stable identity")


def missing_units(folder: Path, units: int) -> list[int]:
    """Numbers of the units without a result, in order."""
    finished = finished_units(folder)
    return [number for number in range(units) if number not in finished]


def finished_units(folder: Path) -> set[int]:
    """Numbers of finished units. Lists the folder, since a shared file system may cache that a name was absent."""
    names = [path.name for path in folder.glob("unit-*") if not path.suffix]
    return {int(name.removeprefix("unit-")) for name in names if (folder / name / COUNTS_NAME).is_file()}


def remove_unfinished_units(folder: Path) -> None:
    """Remove unfinished work of killed tasks; no task of this folder may be running."""
    for unfinished in folder.glob("unit-*.partial-*"):
        shutil.rmtree(unfinished, ignore_errors=True)


def write_plan(home: Path, plan: Plan) -> None:
    """Write the plan; remove failures and unfinished work of earlier attempts, none of which may be running."""
    remove_unfinished_units(plan.folder)
    shutil.rmtree(home, ignore_errors=True)
    (home / FAILURES_NAME).mkdir(parents=True)
    atomic_write(home / PLAN_NAME, pickle.dumps(plan))


def read_plan(home: Path) -> Plan:
    """The plan, read on a node; ``LaunchError`` if the node cannot see it."""
    try:
        content = (home / PLAN_NAME).read_bytes()
    except FileNotFoundError:
        raise LaunchError(
            f"{home / PLAN_NAME}: not visible on {socket.gethostname()}; every node must see the run folder "
            "under the same path"
        ) from None
    plan: Plan = pickle.loads(content)
    return plan


def write_failure(home: Path, failure: Failure) -> None:
    """Write the reason to the file that the command reads when the job has ended."""
    text = json.dumps(failure._asdict(), ensure_ascii=False)
    atomic_write(home / FAILURES_NAME / f"unit-{failure.number:05}.json", text)


def read_failures(home: Path) -> list[Failure]:
    """Failures in unit order; a later attempt may have finished some."""
    paths = (home / FAILURES_NAME).glob("unit-*.json")
    return sorted(Failure(**json.loads(path.read_text("utf-8"))) for path in paths)


def read_counts(folder: Path, units: int) -> list[dict[str, Any]]:
    """The counts of all units in order."""
    return [json.loads((unit_folder(folder, n) / COUNTS_NAME).read_text("utf-8")) for n in range(units)]
