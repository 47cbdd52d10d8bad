"""``malmoi doctor``: is this machine ready? One line per check with a tick or a cross, and the mend where it helps."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from typing import NamedTuple

from packaging.requirements import Requirement

from launch.console import PlainConsole
from launch.guard import HOME, foreign_package

GIB = 1 << 30
GLOO_CHECK = """
import os, torch, torch.distributed as dist
rank = int(os.environ["RANK"])
dist.init_process_group("gloo")
number = torch.tensor([rank + 1.0])
dist.all_reduce(number)
assert number.item() == 3.0, number
dist.destroy_process_group()
"""


class Check(NamedTuple):
    """One line: what was looked at, whether it is well (None: only worth knowing), what was found, what to do."""

    name: str
    is_well: bool | None
    found: str
    mend: str = ""


def examine() -> bool:
    """Print every check; returns False when one of them stops malmoi from working."""
    console = PlainConsole()
    healthy = True
    for check in _checks():
        mark, colour = {True: ("✓", "green"), False: ("✗", "red"), None: ("·", "dim")}[check.is_well]
        console.print(mark, style=colour, end=" ")
        console.print(f"{check.name:<12} {check.found}", soft_wrap=True)
        if check.mend:
            console.print(f"  → {check.mend}", style="yellow", soft_wrap=True)
        healthy = healthy and check.is_well is not False
    return healthy


def _checks() -> Iterator[Check]:
    probes: tuple[Callable[[], Check], ...] = (
        check_python, check_packages, check_guard, check_cores, check_memory, check_disk, check_gpu,
        check_deepspeed, check_dictionary, check_two_processes,
    )  # fmt: skip
    for probe in probes:
        name = probe.__name__.removeprefix("check_").replace("_", " ")
        try:
            yield probe()
        except Exception as error:
            yield Check(name, False, f"{type(error).__name__}: {error}", "reinstall with `pip install -e .`")


def check_python() -> Check:
    found = ".".join(map(str, sys.version_info[:3]))
    well = sys.version_info >= (3, 11)
    return Check("Python", well, found, "" if well else "malmoi needs Python 3.11 or newer")


def check_packages() -> Check:
    """Installed versions against the requirements of the distribution."""
    try:
        wanted = [Requirement(line) for line in requires("malmoi") or []]
    except PackageNotFoundError:
        return Check("packages", False, "malmoi is not installed", "run `pip install -e .` in its folder")
    wrong = []
    wanted = [requirement for requirement in wanted if not requirement.marker]
    for requirement in wanted:
        try:
            found = version(requirement.name)
        except PackageNotFoundError:
            wrong.append(f"{requirement.name} missing")
            continue
        if not requirement.specifier.contains(found, prereleases=True):
            wrong.append(f"{requirement.name} {found} is not {requirement.specifier}")
    summary = f"{len(wanted) - len(wrong)} of {len(wanted)} as required"
    return Check("packages", not wrong, summary, "; ".join(wrong))


def check_guard() -> Check:
    problem = foreign_package()
    return Check("names", problem is None, problem or f"all five packages resolve to {HOME}")


def check_cores() -> Check:
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Check("cores", True, f"{count}")


def check_memory() -> Check:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIB
    well = total >= 3.5
    return Check("memory", well, f"{total:.1f} GiB", "" if well else "the smoke recipe needs 4 GiB")


def check_disk() -> Check:
    free = shutil.disk_usage(".").free / GIB
    well = free >= 1
    return Check("disk", well, f"{free:.1f} GiB free here", "" if well else "free 1 GiB, or use --runs elsewhere")


def check_gpu() -> Check:
    import torch

    if not torch.cuda.is_available():
        return Check("GPU", None, "none; the processor is used (fine for the smoke recipe)")
    names = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    return Check("GPU", True, ", ".join(names))


def check_deepspeed() -> Check:
    if importlib.util.find_spec("deepspeed") is None:
        return Check("DeepSpeed", False, "not installed", "run `pip install deepspeed`")
    import deepspeed

    return Check("DeepSpeed", True, deepspeed.__version__)


def check_dictionary() -> Check:
    from mecab import MeCab

    morphemes = MeCab().morphs("말모이를 만들었다")
    well = morphemes == ["말모이", "를", "만들", "었", "다"] or "를" in morphemes
    mend = "" if well else "run `pip install --force-reinstall python-mecab-ko python-mecab-ko-dic`"
    return Check("dictionary", well, f"말모이를 만들었다 → {' '.join(morphemes)}", mend)


def check_two_processes() -> Check:
    """Two processes add numbers over gloo, as a launch on one machine does."""
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
        "--no-python", sys.executable, "-c", GLOO_CHECK,
    ]  # fmt: skip
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return Check("two processes", False, "no answer in 120 s", "set GLOO_SOCKET_IFNAME to your network interface")
    last = (result.stderr.strip().splitlines() or [""])[-1]
    if result.returncode:
        return Check("two processes", False, last[:200], "set GLOO_SOCKET_IFNAME to your network interface")
    return Check("two processes", True, "gloo all-reduce works")
