"""Scripts for hosts that are reached by ssh: ``run.sh`` on one machine, ``node.sh`` on each, and their ``hostfile``.

What a host does stands in a file that it reads from the shared folder, so no value of a recipe is ever a word of a
command line that ssh, pdsh or deepspeed hands on: those quote in ways of their own.
"""

from __future__ import annotations

from launch.cluster.jobs.plan import Launch, own_binaries
from launch.cluster.jobs.render import render
from launch.cluster.jobs.slurm import MOST_HANGS, MOST_RESTARTS, container_prefix
from launch.errors import LaunchError
from launch.executors.slurm import UNSAFE


def hosts_files(launch: Launch) -> dict[str, str]:
    """Texts by file name; ``run.sh`` starts all.

    Raises:
        LaunchError: the site names no hosts, or a path that the launchers cannot hand on.
    """
    site = launch.site
    if not site.hosts.names:
        raise LaunchError("no hosts; name them in site.yaml: hosts: {names: [gpu1, gpu2]}")
    if found := UNSAFE.search(str(launch.folder)):
        raise LaunchError(f"{launch.folder}: launchers cannot hand on {found[0]!r} in a path; choose another --runs")
    if site.hosts.elastic and site.launcher != "torchrun":
        raise LaunchError("hosts.elastic is for torchrun; set launcher: torchrun, or elastic: false")
    if site.container.runtime == "pyxis" and site.container.image:
        raise LaunchError("container.runtime pyxis is a part of Slurm; hosts need apptainer")
    commands = {verb: launch.arguments(verb, launch.task(verb)) for verb in launch.verbs}
    values = {"launch": launch, "commands": commands, "prefix": container_prefix(launch), "binaries": own_binaries()}
    return {
        "hostfile": "".join(f"{name} slots={site.pretrain.processes_here}\n" for name in site.hosts.names),
        "node.sh": render("node.sh.j2", most_restarts=MOST_RESTARTS, **values),
        "run.sh": render("run.sh.j2", most_hangs=MOST_HANGS, **values),
    }
