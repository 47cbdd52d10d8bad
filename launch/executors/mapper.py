"""Run a stage on a cluster: its units (``engine_mapper``) or the queue of fine-tuning jobs (``engine_cluster``).

Files and counts are those of ``corpus.documents.units.map_units`` on one machine. The unit folders record what is
finished, so a resumed run counts right and the engine may change in between. Tasks that are killed, as for a lack of
memory, are tried again. Cost: two starts of Python per task, and a failed unit is reported only when the job has ended.
"""

from __future__ import annotations

import json
import logging
import pickle
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpus.documents.errors import BadInput
from corpus.documents.units import COUNTS_NAME, MapUnits, unit_folder
from launch.config import LaunchConfig
from launch.errors import LaunchError, require
from launch.executors import slurm, task
from launch.executors.ray import execute_on_ray

if TYPE_CHECKING:
    from finetune.run import Cluster

log = logging.getLogger(__name__)

EXECUTE = {"slurm": slurm.execute_on_slurm, "ray": execute_on_ray}


def engine_mapper(config: LaunchConfig) -> MapUnits | None:
    """The map for ``config.engine``, called like ``map_units``; None for processes of this machine.

    A cluster ignores ``workers``. ``work`` and units must be picklable and importable on every node, and every node
    must see ``folder`` and the inputs under the same paths.
    """
    if config.engine == "local":
        return None
    check_engine(config)
    return partial(map_on_cluster, config.model_copy(update={"gpus_per_task": 0}))


def engine_cluster(config: LaunchConfig) -> Cluster | None:
    """The cluster of ``config.engine`` for finetune; None for processes of this machine."""
    if config.engine == "local":
        return None
    check_engine(config)
    from finetune.run import Cluster

    return Cluster(partial(run_tasks, config), config.cpus_per_task, config.gpus_per_task)


def check_engine(config: LaunchConfig) -> None:
    """Raise ``LaunchError`` if ``config.engine`` cannot be used here."""
    if config.engine == "ray":
        require("launch.engine=ray", ("ray",))
    if config.engine == "slurm":
        slurm.check_slurm()


def map_on_cluster(
    config: LaunchConfig,
    work: Callable[[Any, Path], dict[str, Any]],
    units: Iterable[Any],
    folder: Path,
    *,
    workers: int = 1,
    title: str = "units",
    size_of: Callable[[Any], int] | None = None,
    total: int | None = None,
) -> list[dict[str, Any]]:
    """Finish all units through the engine and wait for them; see ``engine_mapper``.

    Raises:
        BadInput: a unit cannot be processed; the message is that of the first such unit.
        LaunchError: units are missing when the job has ended; names the logs.
    """
    units = list(units)
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    home = task.engine_home(work, units, folder)
    numbers = set(range(len(units)))
    if finished := task.finished_units(folder):
        log.info("%s: %d of %d were finished earlier", title, len(finished), len(units))
    if missing := sorted(numbers - finished):
        losses = EXECUTE[config.engine](config, task.Plan(work, units, missing, folder, Path.cwd()), home)
        if missing := sorted(numbers - task.finished_units(folder)):
            failures = [failure for failure in task.read_failures(home) if failure.number in missing]
            if for_user := next((failure for failure in failures if failure.is_for_user), None):
                raise BadInput(for_user.message)
            reasons = [f"unit {failure.number}: {failure.message}" for failure in failures]
            reasons += [f"task {rank}: {loss}" for rank, loss in losses.items()]
            reason = next(iter(reasons), "no task reported a reason")
            raise LaunchError(
                f"{len(missing)} of {len(units)} units are missing ({reason}); logs: {home / task.LOGS_NAME}; "
                "run the same command again to repeat only these"
            )
    task.remove_unfinished_units(folder)
    return [json.loads((unit_folder(folder, n) / COUNTS_NAME).read_text("utf-8")) for n in range(len(units))]


def run_tasks(
    config: LaunchConfig, work: Callable[[int, Path], dict[str, Any]], max_tasks: int, folder: Path
) -> list[str]:
    """Call ``work(number, scratch)`` in up to ``max_tasks`` tasks and wait; ``folder`` holds plans and logs.

    The tasks take jobs from one queue and end when it is empty. Returns a sentence for each task that failed; then the
    logs are kept. A command that is started again finds its Slurm job by the digest of ``work`` and waits for it.
    """
    home = task.home_of(work, [], folder)
    numbers = list(range(min(config.tasks, max_tasks)))
    units = home.with_name(f"{home.name}-tasks")
    if config.engine != "slurm" or not slurm.is_queued(slurm.job_name(home)):
        shutil.rmtree(units, ignore_errors=True)
    units.mkdir(parents=True, exist_ok=True)
    packed = partial(_unpack, work=pickle.dumps(work))  # so that the process that starts a task need not import torch
    losses = EXECUTE[config.engine](config, task.Plan(packed, numbers, numbers, units, Path.cwd()), home)
    failures = losses | {failure.number: failure.message for failure in task.read_failures(home)}
    failed, logs = sorted({*numbers} - task.finished_units(units)), home / task.LOGS_NAME
    problems = [f"task {number}: {failures.get(number, 'reported no reason')} (logs: {logs})" for number in failed]
    if not problems:
        shutil.rmtree(home, ignore_errors=True)
    shutil.rmtree(units, ignore_errors=True)
    with suppress(OSError):  # not empty: it holds logs, or files of another command
        folder.rmdir()
    return problems


def _unpack(number: int, scratch: Path, *, work: bytes) -> dict[str, Any]:
    counts: dict[str, Any] = pickle.loads(work)(number, scratch)
    return counts
