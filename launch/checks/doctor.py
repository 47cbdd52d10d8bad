"""``malmoi doctor``: is this machine ready, and for what? One line per check, recipes, repairs."""

from __future__ import annotations

import locale
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from typing import NamedTuple

from packaging.requirements import Requirement

from launch.checks.guard import HOME, foreign_package, other_system
from launch.console import PlainConsole
from launch.errors import missing_modules
from launch.recipe import load_recipe, shipped_recipes

GIB = 1 << 30
TRAINING = ("tokens", "pretrain", "model", "finetune")  # stages that need the extra "train"
LOOPBACK = f"export GLOO_SOCKET_IFNAME={'lo0' if sys.platform == 'darwin' else 'lo'}"
INSTALL_TRAIN = "pip install 'malmoi[train]'"
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
    """One line: what was looked at, whether it is well (None: only worth knowing), what was found, how to repair it."""

    name: str
    is_well: bool | None
    found: str
    repair: str = ""


def examine() -> bool:
    """Print every check and what the machine is ready for; returns False when a check stops malmoi from working."""
    console = PlainConsole()
    checks = []
    for check in _checks():
        mark, colour = {True: ("✓", "green"), False: ("✗", "red"), None: ("·", "dim")}[check.is_well]
        console.print(mark, style=colour, end=" ")
        console.print(f"{check.name:<13} {check.found}", soft_wrap=True)
        checks.append(check)
    broken = [check for check in checks if check.is_well is False]
    has_gpu = any(check.name == "GPU" and check.is_well for check in checks)
    console.print()
    for line in readiness(not broken, not missing_modules(TRAINING), has_gpu):
        console.print(line, soft_wrap=True)
    for check in checks:
        if check.repair:
            console.print(f"  {check.name}: {check.repair}", style="yellow", soft_wrap=True)
    return not broken


def readiness(is_well: bool, can_train: bool, has_gpu: bool) -> list[str]:
    """What the machine can be used for, and what keeps it from the rest, as lines."""
    if not is_well:
        return ["not ready; repair first:"]
    if not can_train:
        return ["ready for personal data, corpus, tokenizer and scores; recipes that train need more:"]
    recipes = {name: load_recipe(name) for name in shipped_recipes()}
    ready = [name for name, recipe in recipes.items() if has_gpu or "gpu" not in recipe.needs]
    waiting = [name for name in recipes if name not in ready]
    free = [name for name in ready if not recipes[name].needs]
    given = [name for name in ready if name not in free]
    lines = [f"ready for {', '.join(free)}; with your text and the KLUE files for {', '.join(given)}"]
    return lines + ([f"{', '.join(waiting)} need a GPU"] if waiting else [])


def _checks() -> Iterator[Check]:
    probes: list[Callable[[], Check]] = [
        check_system, check_python, check_packages, check_names, check_encoding, check_cores, check_memory, check_disk,
        check_dictionary, check_compiler, check_training,
    ]  # fmt: skip
    if not missing_modules(TRAINING):
        probes += [check_gpu, check_two_processes]
    for probe in probes:
        try:
            yield probe()
        except Exception as error:
            name = probe.__name__.removeprefix("check_").replace("_", " ")
            yield Check(name, False, f"{type(error).__name__}: {error}", "pip install --force-reinstall malmoi")


def check_system() -> Check:
    problem = other_system()
    return Check("system", problem is None, f"{platform.system()} {platform.release()}", problem or "")


def check_python() -> Check:
    well = sys.version_info >= (3, 11)
    return Check("Python", well, platform.python_version(), "" if well else "malmoi needs Python 3.11 or newer")


def check_packages() -> Check:
    """Installed versions against the requirements of the distribution."""
    try:
        wanted = [requirement for requirement in map(Requirement, requires("malmoi") or []) if not requirement.marker]
    except PackageNotFoundError:
        return Check("packages", False, "malmoi is not installed", f"pip install -e {HOME}")
    wrong = _not_as_required(wanted)
    return Check("packages", not wrong, f"{len(wanted) - len(wrong)} of {len(wanted)} as required", _install(wrong))


def check_training() -> Check:
    """The extra "train", which recipes need and single tools do not."""
    wanted = [one for one in map(Requirement, requires("malmoi") or []) if one.marker and _is_for("train", one)]
    wrong = _not_as_required(wanted)
    if missing := missing_modules(TRAINING):
        return Check("training", None, f"{', '.join(missing)} not installed", INSTALL_TRAIN)
    return Check("training", not wrong, f"{len(wanted) - len(wrong)} of {len(wanted)} as required", _install(wrong))


def _is_for(extra: str, requirement: Requirement) -> bool:
    return requirement.name != "malmoi" and bool(requirement.marker and requirement.marker.evaluate({"extra": extra}))


def _not_as_required(wanted: Sequence[Requirement]) -> list[str]:
    wrong = []
    for requirement in wanted:
        try:
            if requirement.specifier.contains(version(requirement.name), prereleases=True):
                continue
        except PackageNotFoundError:
            pass
        wrong.append(f"'{requirement.name}{requirement.specifier}'")
    return wrong


def _install(requirements: Sequence[str]) -> str:
    return f"pip install {' '.join(requirements)}" if requirements else ""


def check_names() -> Check:
    problem = foreign_package()
    return Check("names", problem is None, problem or f"all five packages resolve to {HOME}")


def check_encoding() -> Check:
    """Files are UTF-8 whatever the locale says; names of files and the terminal are the system's."""
    terminal, names = sys.stdout.encoding or locale.getpreferredencoding(False), sys.getfilesystemencoding()
    if names.lower() != "utf-8":
        return Check("encoding", False, f"names of files are {names}", "export PYTHONUTF8=1")
    well = terminal.lower().replace("-", "") == "utf8"
    return Check("encoding", well or None, f"terminal {terminal}", "" if well else "export PYTHONIOENCODING=utf-8")


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
    return Check("disk", well, f"{free:.1f} GiB free here", "" if well else "free 1 GiB, or give --runs another folder")


def check_gpu() -> Check:
    import torch

    if not torch.cuda.is_available():
        return Check("GPU", None, "none; the processor is used")
    names = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    return Check("GPU", True, ", ".join(names))


def check_compiler() -> Check:
    """DeepSpeed's operators and torch.compile are built when they are first used."""
    found = next(
        (path for name in (os.environ.get("CXX", ""), "c++", "g++", "clang++") if (path := shutil.which(name))), ""
    )
    repair = "xcode-select --install" if sys.platform == "darwin" else "sudo apt-get install g++"
    return Check("compiler", bool(found) or None, found or "no C++ compiler", "" if found else repair)


def check_dictionary() -> Check:
    from mecab import MeCab

    morphemes = MeCab().morphs("말모이를 만들었다")
    well = "를" in morphemes
    repair = "" if well else "pip install --force-reinstall python-mecab-ko python-mecab-ko-dic"
    return Check("dictionary", well, f"말모이를 만들었다 → {' '.join(morphemes)}", repair)


def check_two_processes() -> Check:
    """Two processes add numbers over gloo, as a launch on one machine does."""
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
        "--no-python", sys.executable, "-c", GLOO_CHECK,
    ]  # fmt: skip
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return Check("two processes", False, "no answer in 120 s", LOOPBACK)
    last = (result.stderr.strip().splitlines() or [""])[-1]
    if result.returncode:
        return Check("two processes", False, last[:200], LOOPBACK)
    return Check("two processes", True, "gloo all-reduce works")
