"""The plan of a cluster job, one file that every node reads, and its tasks, which finish every n-th missing unit.

The plan is written to ``<folder>/engine-<digest>`` next to the unit folders. The digest covers the work, its settings,
the units and the folder, so tasks with other settings never touch these units. A node that cannot see the plan does not
share the file system and reports that. The plan is a pickle, as in any process pool: whoever can write to the run
folder can run code.

Slurm starts ``python -m launch.executors.task HOME RANK TASKS``, Ray calls ``start_task``. Both start a second process
for the work: a task that is killed for its memory is noticed, text of a failing document reaches no log of the cluster,
and nothing is forked from Ray's threads. Cost: one more start of Python.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

from pydantic import BaseModel

from corpus.documents.atomic_files import atomic_write
from corpus.documents.units import COUNTS_NAME, run_unit, unit_folder
from launch.errors import USER_ERRORS, LaunchError, error_message

log = logging.getLogger(__name__)

PLAN_NAME = "plan.pickle"
FAILURES_NAME, LOGS_NAME = "failures", "logs"
WORK = "work"  # last argument of the process that does the work
FAILED = 3  # exit status: a failure file says why
KILLED = 128 + signal.SIGKILL  # exit status of a task whose work was killed, as shells and srun report it
MAX_ATTEMPTS = 3  # of a task that is killed: its first and its retries, each in new processes
MEMORY_ADVICE = "usually too little memory: raise launch.mem_gb_per_cpu"
FRAMES_SHOWN = 6


class TaskKilled(LaunchError):
    """The process that does the work was killed; the task may be tried again."""


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

    ``LaunchError`` if ``folder`` already holds units that were made with other settings.
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
        return [kind, describe([value.func, value.args, value.keywords])]
    if isinstance(value, BaseModel):
        return [kind, describe(dict(value))]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [kind, describe({field.name: getattr(value, field.name) for field in dataclasses.fields(value)})]
    if hasattr(value, "__qualname__"):
        return [value.__module__, value.__qualname__]
    raise TypeError(f"a {type(value).__name__} cannot be part of work for a cluster: it has no stable identity")


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


def start_task(home: Path, rank: int, tasks: int) -> None:
    """Run the task in its own process and wait for it.

    Raises:
        TaskKilled: the process was killed.
        LaunchError: units are left for another reason. In both cases, a file holds the reason.
    """
    plan = read_plan(home)
    if not plan.directory.is_dir():
        raise LaunchError(f"{plan.directory}: not on this node; start malmoi in a folder that every node sees")
    command = [sys.executable, "-m", "launch.executors.task", str(home), str(rank), str(tasks), WORK]
    log_file = home / LOGS_NAME / f"task-{rank:05}.log"
    log_file.parent.mkdir(exist_ok=True)
    with (
        log_file.open("ab") as output,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=output, cwd=plan.directory) as process,
    ):
        status = process.wait()  # its standard input stays open; the process ends when this one does
    unfinished = next((number for number in plan.missing[rank::tasks] if not _is_finished(plan, number)), None)
    if unfinished is None:
        return
    is_killed = status == -signal.SIGKILL
    if status != FAILED:
        hint = f" ({MEMORY_ADVICE})" if is_killed else ""
        ended = f"status {status}" if status >= 0 else signal.Signals(-status).name + hint
        write_failure(home, Failure(unfinished, False, f"its process ended with {ended}"))
    raise (TaskKilled if is_killed else LaunchError)(f"task {rank} of {tasks} failed; the reason is in {home}")


def run_task(home: Path, rank: int, tasks: int) -> int:
    """Finish the task's units in order; returns the exit status: 0, or ``FAILED`` once a failure was written."""
    plan = read_plan(home)
    for number in plan.missing[rank::tasks]:
        if _is_finished(plan, number):  # by an earlier attempt
            continue
        start = time.monotonic()
        failure = finish_or_explain(plan, number)
        if failure is not None:
            write_failure(home, failure)
            log.error("unit %d failed", number)
            return FAILED
        log.info("unit %d finished in %.1f s", number, time.monotonic() - start)
    return 0


def finish_or_explain(plan: Plan, number: int) -> Failure | None:
    """Finish one unit. The failure of a bug names code lines only: messages of exceptions may quote the text."""
    try:
        run_unit(plan.work, plan.units[number], unit_folder(plan.folder, number))
    except USER_ERRORS as error:
        if isinstance(error, OSError) and _is_finished(plan, number):
            return None  # an attempt that the cluster considered dead was faster; its bytes are the same
        return Failure(number, True, error_message(error))
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)[-FRAMES_SHOWN:]
        places = [f"{Path(frame.filename).name}:{frame.lineno} ({frame.name})" for frame in frames]
        return Failure(number, False, f"{type(error).__name__} at {' > '.join(places)}")
    return None


def _is_finished(plan: Plan, number: int) -> bool:
    return (unit_folder(plan.folder, number) / COUNTS_NAME).is_file()


def main(arguments: Sequence[str]) -> int:
    """Entry of both processes; ``arguments`` are HOME, RANK, TASKS and, for the one that does the work, ``WORK``."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    home, rank, tasks, *work = arguments
    if work:  # end when standard input closes, that is, when the process that started this one has ended
        standard_input = 0  # the descriptor: a thread in `sys.stdin.read` holds a lock that Python needs at exit
        Thread(target=lambda: (os.read(standard_input, 1), os._exit(1)), daemon=True).start()
        return run_task(Path(home), int(rank), int(tasks))
    try:
        start_task(Path(home), int(rank), int(tasks))
    except LaunchError as error:
        log.error("%s", error)
        return KILLED if isinstance(error, TaskKilled) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
