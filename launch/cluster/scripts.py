"""Scripts for Slurm (one per stage, submitted with dependencies by ``submit.sh``, or one for all) and for ssh hosts.

Every stage of Slurm runs under srun, so that signals reach it and its exit code is known. Files on disk decide whether
a pretraining job is requeued, not its exit code, because torchrun ends with 1 for every error: a job that wrote a newer
checkpoint is requeued.

Hosts have ``run.sh`` on one machine, ``node.sh`` on each, and their ``hostfile``. Each host reads its commands from a
file in the shared folder, so no value of a recipe passes through the command lines of ssh, pdsh or deepspeed, each of
which quotes differently.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from launch.cluster.jobs import Launch, render, warn_of_unused
from launch.cluster.site import FinetuneTask, PretrainTask, Task
from launch.errors import LaunchError
from launch.executors.slurm import UNSAFE, directives, time_limit

SIGNAL_SECONDS = 300  # before the time limit; Slurm may send it a minute early
GPUS = re.compile(r"gpu(?::[A-Za-z][\w.-]*)?(?::(\d+))?(?:\(.*\))?")  # of gres: gpu, gpu:8, gpu:a100:8
ALL = "all"  # the job that runs every stage


def slurm_files(launch: Launch, *, one_job: bool = False) -> dict[str, str]:
    """Texts by file name; ``submit.sh`` submits the others in order."""
    if one_job:
        warn_of_unused(launch, ("prepare", "finetune"), "--one-job uses those of pretrain")
    jobs = {ALL: launch.verbs} if one_job else {verb: (verb,) for verb in launch.verbs}
    files, prefix = dict[str, str](), container_prefix(launch)
    for job, verbs in jobs.items():
        task = launch.site.pretrain if job == ALL else launch.task(job)
        values = {"directives": _directives(launch, job, task), "prefix": prefix}
        commands = {verb: launch.arguments(verb, task) for verb in verbs}
        files[f"{job}.sbatch"] = render("job.sbatch.j2", launch=launch, verbs=verbs, commands=commands, **values)
    return files | {"submit.sh": render("submit.sh.j2", launch=launch, jobs=jobs)}


def _directives(launch: Launch, job: str, task: Task) -> list[str]:
    minutes, options = math.ceil(task.hours * 60), launch.site.slurm | task.options
    is_array = job != ALL and isinstance(task, FinetuneTask)
    defaults: dict[str, object] = {
        "job-name": f"{launch.recipe.name}-{job}",
        "output": f"{launch.folder}/logs/{job}-{'%A_%a' if is_array else '%j'}.log",
        "open-mode": "append",
        "array": f"0-{task.tasks - 1}" if isinstance(task, FinetuneTask) and is_array else "",
        "nodes": task.nodes if isinstance(task, PretrainTask) else 1,
        "ntasks-per-node": 1,
        "cpus-per-task": task.cpus,
        "gres": f"gpu:{task.gpus}" if task.gpus else "",
        "mem": f"{task.memory_gb}G" if task.memory_gb else "",
        "time": time_limit(task.hours),
        "signal": f"USR1@{min(SIGNAL_SECONDS, minutes * 60 // 3)}",
    }
    _check_gpus(launch, task, options)
    known = {name: value for name, value in defaults.items() if value != ""}
    return [*directives(known | options), "--requeue"]


def _check_gpus(launch: Launch, task: Task, options: Mapping[str, object]) -> None:
    """``LaunchError`` if the options ask for another number of GPUs than the site's key."""
    name = next(name for name in ("pretrain", "finetune", "prepare") if getattr(launch.site, name) is task)
    matches = map(GPUS.fullmatch, str(options.get("gres", "")).split(","))
    count = sum(int(match[1] or 1) for match in matches if match)
    if count and count != task.gpus:
        raise LaunchError(
            f"gres={options['gres']}: {count} GPUs, but {name}.gpus is {task.gpus}; give both the same number in "
            "site.yaml, and set gres only in the options of stages that need it"
        )


def hosts_files(launch: Launch) -> dict[str, str]:
    """Texts by file name; ``run.sh`` starts everything.

    ``LaunchError`` if the site names no hosts, its settings contradict, or the launchers cannot pass on a path.
    """
    site = launch.site
    if not site.hosts.names:
        raise LaunchError("no hosts; name them in site.yaml: hosts: {names: [gpu1, gpu2]}")
    if unsafe := UNSAFE.search(str(launch.folder)):
        raise LaunchError(f"{launch.folder}: launchers cannot pass on {unsafe[0]!r} in a path; choose another --runs")
    if site.hosts.elastic and site.launcher != "torchrun":
        raise LaunchError("hosts.elastic needs launcher: torchrun; set that, or elastic: false")
    ports = [name for name in site.hosts.names if site.hosts.target(name) != name]
    if ports and site.launcher == "deepspeed":
        raise LaunchError(f"{ports[0]}: launcher: deepspeed takes no ports; set them in ~/.ssh/config, or use torchrun")
    warn_of_unused(launch, ("prepare", "pretrain", "finetune"), "only Slurm has them")
    commands = {verb: launch.arguments(verb, launch.task(verb)) for verb in launch.verbs}
    values = {"launch": launch, "commands": commands, "prefix": container_prefix(launch)}
    return {
        "hostfile": "".join(f"{name} slots={site.pretrain.processes_per_node}\n" for name in site.hosts.names),
        "node.sh": render("node.sh.j2", **values),
        "run.sh": render("run.sh.j2", **values),
    }


def container_prefix(launch: Launch) -> list[str]:
    """Words before a command that run it in the site's image, with every folder that it needs; none without image.

    ``LaunchError`` for a path with a separator of the option.
    """
    site, container = launch.site, launch.site.container
    if not container.image:
        return []
    own = filter(None, (site.shared, site.local, str(launch.runs), str(launch.directory)))
    folders = list(dict.fromkeys([*own, *container.mounts]))
    if unsafe := [folder for folder in folders if "," in folder or ":" in folder]:
        raise LaunchError(f"{unsafe[0]}: the path of a mounted folder cannot hold ',' or ':'")
    mounts = [word for folder in folders for word in ("--bind", folder)]
    gpus = ["--nv"] if site.pretrain.gpus else []
    return ["apptainer", "exec", *gpus, *mounts, "--pwd", str(launch.directory), container.image]
