"""Batch scripts for Slurm: one for each stage, handed in with dependencies by ``submit.sh``, or one for all.

Every stage runs under srun, so that signals reach it and its exit code comes back. Choice: what decides whether a job
goes back into the queue is what lies on the disk, not an exit code, as torchrun ends with 1 whatever its processes
ended with: a pretraining that left a newer checkpoint goes on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from launch.cluster.jobs.config import FinetuneTask, PretrainTask, Task
from launch.cluster.jobs.plan import Launch, own_binaries
from launch.cluster.jobs.render import render
from launch.errors import LaunchError
from launch.executors.slurm import UNSAFE, time_limit

SIGNAL_SECONDS = 300  # before the time is over; Slurm may be a minute early
MOST_HANGS = 3  # of pretraining after one checkpoint; what hangs more often needs a person
MOST_RESTARTS = 50  # of a stage whose time was over; each goes on from the units that are finished
ALL = "all"  # the job that does every stage


def slurm_files(launch: Launch, *, one_job: bool = False) -> dict[str, str]:
    """Texts by file name; ``submit.sh`` hands in the others, in their order.

    Raises:
        LaunchError: a path that a batch script cannot name its log by.
    """
    if found := UNSAFE.search(str(launch.folder)):
        raise LaunchError(f"{launch.folder}: Slurm scripts cannot hold {found[0]!r} in a path; choose another --runs")
    jobs = {ALL: launch.verbs} if one_job else {verb: (verb,) for verb in launch.verbs}
    files = {f"{job}.sbatch": _job(launch, job, verbs) for job, verbs in jobs.items()}
    return files | {"submit.sh": render("submit.sh.j2", launch=launch, jobs=list(jobs))}


def _job(launch: Launch, job: str, verbs: Sequence[str]) -> str:
    task = launch.site.pretrain if job == ALL else launch.task(job)
    return render(
        "job.sbatch.j2",
        launch=launch,
        verbs=list(verbs),
        directives=_directives(launch, job, task),
        commands={verb: launch.arguments(verb, task) for verb in verbs},
        binaries=own_binaries(),
        srun=["srun", "--kill-on-bad-exit=1", *_pyxis(launch)],
        prefix=container_prefix(launch),
        most_restarts=MOST_RESTARTS,
        most_hangs=MOST_HANGS,
    )


def _directives(launch: Launch, job: str, task: Task) -> list[str]:
    slurm, minutes = launch.site.slurm, math.ceil(task.hours * 60)
    is_array = job != ALL and isinstance(task, FinetuneTask)
    options: dict[str, object] = {
        "job-name": f"{launch.recipe.name}-{job}",
        "output": f"{launch.folder}/logs/{job}-{'%A_%a' if is_array else '%j'}.log",
        "open-mode": "append",
        "account": slurm.account,
        "partition": task.partition or slurm.partition,
        "qos": slurm.qos,
        "array": f"0-{task.tasks - 1}" if isinstance(task, FinetuneTask) and is_array else "",
        "nodes": task.nodes if isinstance(task, PretrainTask) else 1,
        "ntasks-per-node": 1,
        "cpus-per-task": task.cpus,
        "gres": f"gpu:{task.gpus}" if task.gpus else "",
        "mem": f"{task.memory_gb}G" if task.memory_gb else "",
        "time": time_limit(task.hours),
        "signal": f"USR1@{min(SIGNAL_SECONDS, minutes * 60 // 3)}",
    }
    options |= slurm.options
    return [f"--{name}={value}" for name, value in options.items() if value != ""] + ["--requeue"]


def container_prefix(launch: Launch) -> list[str]:
    """Words before a command that make it run in the site's image; none where srun or nothing does that."""
    container = launch.site.container
    if not container.image or container.runtime == "pyxis":
        return []
    gpus = ["--nv"] if launch.site.pretrain.gpus else []
    mounts = [word for folder in _mounts(launch) for word in ("--bind", folder)]
    return ["apptainer", "exec", *gpus, *mounts, "--pwd", str(launch.directory), container.image]


def _pyxis(launch: Launch) -> list[str]:
    container = launch.site.container
    if not container.image or container.runtime != "pyxis":
        return []
    mounts = ",".join(f"{folder}:{folder}" for folder in _mounts(launch))
    where = f"--container-workdir={launch.directory}"
    return [f"--container-image={container.image}", f"--container-mounts={mounts}", where]


def _mounts(launch: Launch) -> list[str]:
    """What a container must see, each once; LaunchError for what the option would cut in two."""
    site = launch.site
    folders = [
        *filter(None, (site.shared, site.local)),
        str(launch.runs),
        str(launch.directory),
        *site.container.mounts,
    ]
    for folder in folders:
        if "," in folder or ":" in folder:
            raise LaunchError(f"{folder}: a folder that a container mounts cannot hold ',' or ':'")
    return list(dict.fromkeys(folders))
