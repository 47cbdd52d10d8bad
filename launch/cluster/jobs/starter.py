"""A ``site.yaml`` to begin with: all keys with what they are for, and what Slurm tells of its partitions."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from launch.cluster.jobs.render import render

FIELDS = "%P|%D|%c|%G|%l"  # partition (* at the default), nodes, cores, other resources, time limit
LONGEST_HOURS = 24.0  # a job that asks for less begins sooner


class Partition(NamedTuple):
    """Machines of one kind; cores and GPUs of each."""

    partition: str
    is_default: bool
    nodes: int
    cpus: int
    gpus: int
    hours: float


NOWHERE = Partition("", True, 1, 8, 1, LONGEST_HOURS)


def starter_site() -> str:
    """The text of the file; without Slurm it has the defaults."""
    command = ["sinfo", "--noheader", f"--format={FIELDS}"]
    told = subprocess.run(command, capture_output=True, text=True).stdout if shutil.which("sinfo") else ""
    plain, gpu = choose_partitions(read_partitions(told.splitlines()))
    return render("site.yaml.j2", shared=str(Path.cwd()), plain=plain, gpu=gpu)


def read_partitions(lines: Iterable[str]) -> list[Partition]:
    """What ``sinfo`` tells in ``FIELDS``.

    >>> read_partitions(["gpu*|4|64+|gpu:a100:8(S:0-1)|2-00:00:00"])
    [Partition(partition='gpu', is_default=True, nodes=4, cpus=64, gpus=8, hours=24.0)]
    """
    found = []
    for line in lines:
        name, nodes, cpus, resources, limit = line.split("|")
        gpus = re.search(r"\bgpu:(?:[^:,()]+:)?(\d+)", resources)
        found.append(
            Partition(
                name.rstrip("*"), name.endswith("*"), int(nodes), int(cpus.rstrip("+")),
                int(gpus[1]) if gpus else 0, min(LONGEST_HOURS, _hours(limit)),
            )
        )  # fmt: skip
    return found


def choose_partitions(partitions: list[Partition]) -> tuple[Partition, Partition]:
    """The one for stages on cores, and the one for training: the default if it will do, else the largest."""
    if not partitions:
        return NOWHERE, NOWHERE

    def size(partition: Partition) -> tuple[int, bool, int]:
        return partition.gpus, partition.is_default, partition.nodes * partition.cpus

    without = [partition for partition in partitions if not partition.gpus] or partitions
    return max(without, key=lambda partition: size(partition)[1:]), max(partitions, key=size)


def _hours(limit: str) -> float:
    """Of Slurm's ``[days-][hours:]minutes:seconds`` or ``infinite``."""
    if not re.fullmatch(r"(\d+-)?(\d+:){0,2}\d+", limit):
        return LONGEST_HOURS
    days, _, clock = limit.rpartition("-")
    parts = [int(part) for part in clock.split(":")]
    hours, minutes = (parts[-3] if len(parts) > 2 else 0), (parts[-2] if len(parts) > 1 else 0)
    return int(days or 0) * 24 + hours + minutes / 60
