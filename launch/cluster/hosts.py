"""Scripts for hosts reached by ssh: ``run.sh`` on one machine, ``node.sh`` on each, and their ``hostfile``.

Each host reads its commands from a file in the shared folder, so no value of a recipe passes through the command lines
of ssh, pdsh or deepspeed, each of which quotes differently.
"""

from __future__ import annotations

from launch.cluster.jobs import Launch, render, warn_of_unused
from launch.cluster.slurm import container_prefix
from launch.errors import LaunchError
from launch.executors.slurm import UNSAFE


def hosts_files(launch: Launch) -> dict[str, str]:
    """Texts by file name; ``run.sh`` starts everything.

    Raises:
        LaunchError: the site names no hosts, its settings contradict, or the launchers cannot pass on a path.
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
