"""The map of a stage on a cluster: same call, same files and counts as ``corpus.documents.units.map_units``.

Choice: datatrove 0.10.1 starts the tasks (Slurm, Ray, or processes), nothing more. What is finished is told by the unit
folders, never by datatrove's markers and statistics, so a resumed run counts right and engines may change in between.
Price: one start of Python per task, and a failed unit is known only when the whole job has ended.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

from tqdm import tqdm

from corpus.documents.errors import BadInput
from corpus.documents.units import MapUnits
from launch.config import LaunchConfig
from launch.errors import LaunchError, require
from launch.executors import plan as plans
from launch.executors import slurm
from launch.executors.plan import Plan, finished_units, missing_units, write_plan

log = logging.getLogger(__name__)

BAR_SECONDS = 2.0
CONNECT_SECONDS = 10.0


def engine_mapper(config: LaunchConfig) -> MapUnits | None:
    """The map for ``config.engine``, called like ``map_units``; None for processes of this machine.

    On a cluster ``workers`` has no meaning, ``work`` and units must be picklable and importable on every node, and
    every node must see ``folder`` and the inputs under the same paths.
    """
    if config.engine == "local":
        return None
    check_engine(config)
    return partial(map_on_cluster, config.model_copy(update={"gpus_per_task": 0}))


def check_engine(config: LaunchConfig) -> None:
    """``LaunchError`` where the engine of ``config`` cannot be used."""
    require(f"launch.engine={config.engine}", ("datatrove", "ray") if config.engine == "ray" else ("datatrove",))
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
    """Finish all units through the engine and wait for them; see ``engine_mapper``. Progress is shown in units.

    Raises:
        BadInput: a unit cannot be worked on; the message is that of the first such unit.
        LaunchError: units are missing when the job has ended; names the logs.
    """
    units = list(units)
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    home = plans.engine_home(work, units, folder)
    missing = missing_units(folder, len(units))
    if len(missing) < len(units):
        log.info("%s: %d of %d finished earlier", title, len(units) - len(missing), len(units))
    if missing:
        with quiet_datatrove(), _progress(folder, len(units), title):
            EXECUTE[config.engine](config, Plan(work, units, missing, folder, Path.cwd()), home, workers)
        _check_complete(config, folder, home, len(units))
    plans.remove_left_overs(folder)
    return plans.read_counts(folder, len(units))


def execute_locally(config: LaunchConfig, plan: Plan, home: Path, workers: int) -> None:
    """datatrove's local executor, ``workers`` tasks at a time."""
    from launch.executors.steps import FinishUnits, LocalTasks

    write_plan(home, plan)
    tasks = min(config.tasks, len(plan.missing))
    LocalTasks(
        [FinishUnits(home)],
        tasks=tasks,
        workers=min(workers, tasks),
        logging_dir=str(home),
        skip_completed=False,
        start_method="spawn",
    ).run()


def execute_on_slurm(config: LaunchConfig, plan: Plan, home: Path, workers: int) -> None:
    """Hand in a job array, or find the one of a command that was stopped, and wait for it."""
    name = slurm.job_name(home)
    if slurm.is_queued(name):
        log.info("job %s is in the queue already; waiting for it", name)
    else:
        write_plan(home, plan)
        slurm.submit(home, min(config.tasks, len(plan.missing)), config)
    try:
        slurm.wait(name, lambda: finished_units(plan.folder).issuperset(plan.missing))
    except KeyboardInterrupt:
        log.warning("job %s goes on; the same command waits for it again, `scancel --name=%s` ends it", name, name)
        raise


def execute_on_ray(config: LaunchConfig, plan: Plan, home: Path, workers: int) -> None:
    """Tasks on a running Ray cluster; joins it for the time of the call unless this process already has."""
    import ray

    from launch.executors.steps import FinishUnits, RayTasks

    joined_here = not ray.is_initialized()
    if joined_here:
        _join_ray(config.ray.address)
    try:
        check_room(config, ray.nodes())
        write_plan(home, plan)
        RayTasks(
            [FinishUnits(home)],
            tasks=min(config.tasks, len(plan.missing)),
            workers=config.at_once or -1,
            cpus_per_task=config.cpus_per_task,
            gpus_per_task=config.gpus_per_task,
            mem_per_cpu_gb=config.mem_gb_per_cpu,
            logging_dir=str(home),
            skip_completed=False,
        ).run()
    finally:
        if joined_here:
            ray.shutdown()


def _join_ray(address: str) -> None:
    import ray

    try:
        if address != "auto":  # asked first, since Ray tries a wrong address for more than five minutes
            host, _, port = address.rpartition(":")
            socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
        ray.init(address=address, log_to_driver=False, logging_level=logging.WARNING)
    except OSError:  # Ray's ConnectionError included
        raise LaunchError(
            f"no Ray cluster at launch.ray.address={address}; start one with `ray start --head`"
        ) from None


EXECUTE = {"datatrove-local": execute_locally, "slurm": execute_on_slurm, "ray": execute_on_ray}


def check_room(config: LaunchConfig, nodes: list[dict[str, Any]]) -> None:
    """Ray waits without end, and without a word, for a node that is large enough."""
    living = [node["Resources"] for node in nodes if node["Alive"]]
    offers = [(o.get("CPU", 0), o.get("memory", 0) / 2**30, o.get("GPU", 0)) for o in living]
    wanted = config.cpus_per_task, config.cpus_per_task * config.mem_gb_per_cpu, config.gpus_per_task
    if not any(all(has >= needs for has, needs in zip(offer, wanted, strict=True)) for offer in offers):
        best = ", ".join(f"{c:.0f} CPUs {m:.1f} GiB" + (f" {g:.0f} GPUs" if g else "") for c, m, g in offers) or "none"
        gpus = f" and launch.gpus_per_task={config.gpus_per_task}" if config.gpus_per_task else ""
        raise LaunchError(
            f"no Ray node has launch.cpus_per_task={config.cpus_per_task} with launch.mem_gb_per_cpu="
            f"{config.mem_gb_per_cpu}{gpus}; nodes: {best}"
        )


def _check_complete(config: LaunchConfig, folder: Path, home: Path, units: int) -> None:
    missing = missing_units(folder, units)
    if not missing:
        return
    failures = [failure for failure in plans.read_failures(home) if failure.number in missing]
    for failure in failures:
        if failure.is_for_user:
            raise BadInput(failure.message)
    logs = home / ("slurm_logs" if config.engine == "slurm" else "logs")
    reason = f"unit {failures[0].number}: {failures[0].message}" if failures else "no task gave a reason"
    raise LaunchError(
        f"{len(missing)} of {units} units are missing ({reason}); logs: {logs}; the same command repeats only these"
    )


@contextmanager
def quiet_datatrove() -> Iterator[None]:
    """datatrove reports on standard error, between the lines of our console; its files are written by the tasks."""
    from loguru import logger

    logger.disable("datatrove")
    try:
        yield
    finally:
        logger.enable("datatrove")


@contextmanager
def _progress(folder: Path, units: int, title: str) -> Iterator[None]:
    """A bar that counts unit folders, wherever they are made."""
    stop = Event()
    with tqdm(total=units, initial=len(finished_units(folder)), desc=title, disable=None) as bar:

        def follow() -> None:
            while not stop.wait(BAR_SECONDS):
                bar.update(len(finished_units(folder)) - bar.n)

        if not bar.disable:
            Thread(target=follow, daemon=True).start()
        try:
            yield
        finally:
            stop.set()
            bar.update(len(finished_units(folder)) - bar.n)
