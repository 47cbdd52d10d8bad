"""Tasks of a cluster that share a list of jobs, which is finetune's way: they end when nothing is left to take.

What a task did is told by the jobs, so a task that dies is no error of its own: its sentence is handed back. Units,
plan, logs and waiting are those of ``launch.executors.mapper``.
"""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launch.config import LaunchConfig
from launch.executors import plan as plans
from launch.executors import slurm
from launch.executors.mapper import EXECUTE, check_engine, quiet_datatrove
from launch.executors.plan import Plan, finished_units, home_of

if TYPE_CHECKING:
    from finetune.cluster import Cluster


def engine_cluster(config: LaunchConfig) -> Cluster | None:
    """The cluster of ``config.engine`` for finetune; None for processes of this machine."""
    if config.engine == "local":
        return None
    check_engine(config)
    from finetune.cluster import Cluster

    return Cluster(partial(run_tasks, config), config.cpus_per_task, config.gpus_per_task)


def run_tasks(config: LaunchConfig, work: Callable[[int, Path], dict[str, Any]], most: int, folder: Path) -> list[str]:
    """Call ``work(number, scratch)`` in at most ``most`` tasks and wait for them; plans and logs lie below ``folder``.

    Returns a sentence for each task that did not end well; then the logs stay. A command that is started again finds
    its Slurm job by the digest of ``work`` and waits for that.
    """
    home = home_of(work, [], folder)
    numbers = list(range(min(config.tasks, most)))
    units = home.with_name(f"{home.name}-tasks")
    if config.engine != "slurm" or not slurm.is_queued(slurm.job_name(home)):
        shutil.rmtree(units, ignore_errors=True)
    units.mkdir(parents=True, exist_ok=True)
    packed = partial(_unpack, work=pickle.dumps(work))  # so that whoever starts a task does not import torch, too
    plan = Plan(packed, numbers, numbers, units, Path.cwd())
    with quiet_datatrove():
        EXECUTE[config.engine](config, plan, home, config.at_once or len(numbers))
    ended = finished_units(units)
    failures = {failure.number: failure.message for failure in plans.read_failures(home)}
    logs = home / ("slurm_logs" if config.engine == "slurm" else "logs")
    dead = [number for number in numbers if number not in ended]
    problems = [f"task {number}: {failures.get(number, 'gave no reason')} (logs: {logs})" for number in dead]
    if not problems:
        shutil.rmtree(home, ignore_errors=True)
    shutil.rmtree(units, ignore_errors=True)
    with suppress(OSError):  # it holds logs, or another command's
        folder.rmdir()
    return problems


def _unpack(number: int, scratch: Path, *, work: bytes) -> dict[str, Any]:
    counts: dict[str, Any] = pickle.loads(work)(number, scratch)
    return counts
