"""Checks before anything heavy is imported: the system, whose packages these are, what a verb needs to be installed.

Top-level folders are the import packages, and names such as ``tokenizer`` exist on PyPI too. One of those may stand
before ours on the path, or pip may have merged its files into our folder; both would fail far away from the cause.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from importlib.util import find_spec
from pathlib import Path

from launch.errors import LaunchError

PACKAGES = ("corpus", "tokenizer", "pretrain", "finetune", "launch")
HOME = Path(__file__).resolve().parents[1]
EXTRAS = {  # of our distribution, by the module that each brings
    "torch": "train", "transformers": "train", "deepspeed": "train", "accelerate": "train", "safetensors": "train",
    "matplotlib": "train", "datasets": "hub", "datasketch": "near", "kiwipiepy": "kiwi", "kss": "kss",
    "datatrove": "cluster", "ray": "ray", "tensorboard": "trackers", "wandb": "trackers",
    "presidio_analyzer": "presidio", "sklearn": "dev", "seqeval": "dev",
}  # fmt: skip
NEEDED_BY_STAGE = {
    "tokens": ("transformers",),
    "pretrain": ("torch", "transformers", "deepspeed", "safetensors"),
    "model": ("torch", "transformers", "safetensors"),
    "finetune": ("torch", "transformers", "accelerate", "safetensors"),
    "report": ("matplotlib",),
}


def check_start() -> None:
    """Exit with one sentence where the command cannot work here."""
    try:
        refuse_other_systems()
        refuse_foreign_packages()
    except LaunchError as error:
        print(f"malmoi: {error}", file=sys.stderr)
        sys.exit(2)


def refuse_other_systems(platform: str = sys.platform) -> None:
    """Raise ``LaunchError`` but on Linux and macOS."""
    if platform not in ("linux", "darwin"):
        raise LaunchError(
            f"malmoi runs on Linux and macOS, not on {platform}; on Windows install it inside WSL (`wsl --install`)"
        )


def refuse_foreign_packages(home: Path = HOME) -> None:
    """Raise ``LaunchError`` unless all five packages resolve inside ``home`` and hold our files alone."""
    for name in PACKAGES:
        spec = find_spec(name)
        found = [Path(place).resolve() for place in (spec.submodule_search_locations or [])] if spec else []
        if home / name not in found[:1]:
            where = found[0] if found else (spec.origin if spec else "nowhere")
            raise LaunchError(
                f"the package `{name}` resolves to {where}, not to malmoi's {home / name}; uninstall the other "
                f"`{name}` package, or start malmoi from a virtual environment of its own"
            )
    try:
        _refuse_merged_files(distribution("malmoi"), home)
    except PackageNotFoundError:  # a clone that is not installed
        return


def _refuse_merged_files(ours: Distribution, home: Path) -> None:
    """A wheel lists its files with sizes; an editable installation lists none, and its folder is nobody else's."""
    modules = [file for file in ours.files or () if file.parts[0] in PACKAGES and file.suffix == ".py"]
    sizes = {file.as_posix(): file.size for file in modules if file.size is not None}
    if not sizes:
        return
    paths = [path for name in PACKAGES for path in (home / name).rglob("*.py")]
    present = {path.relative_to(home).as_posix(): path.stat().st_size for path in paths}
    missing = sorted(sizes.keys() - present.keys())
    strange = sorted(name for name, size in present.items() if sizes.get(name) != size)
    other = _owner(strange, home) if strange else None
    if other or missing:
        what = f"{other} has put files into it ({strange[0]})" if other else f"{missing[0]} is gone"
        folder = (strange if other else missing)[0].split("/")[0]
        undo = f"pip uninstall -y {other} && " if other else ""
        raise LaunchError(
            f"the package `{folder}` is not as malmoi installed it: {what}; run `{undo}pip install "
            "--force-reinstall --no-deps malmoi`, best in a virtual environment of its own"
        )


def _owner(names: Iterable[str], home: Path) -> str | None:
    """The other distribution that lists one of the files."""
    wanted = set(names)
    for other in distributions(path=[str(home)]):
        if other.name != "malmoi" and any(file.as_posix() in wanted for file in other.files or ()):
            return str(other.name)
    return None


def require_for_stages(verb: str, stages: Iterable[str]) -> None:
    """Raise ``LaunchError`` when something that the stages import is not installed."""
    needed = [module for stage in stages for module in NEEDED_BY_STAGE.get(stage, ())]
    require(verb, sorted(needed, key=lambda module: module != "torch"))  # what people know first


def require(who: str, modules: Iterable[str]) -> None:
    """Raise ``LaunchError`` with what to install unless all modules are there."""
    for module in modules:
        if find_spec(module) is None:
            raise LaunchError(f"{who} needs {module}: pip install 'malmoi[{EXTRAS[module]}]'")


def explain_missing_module(who: str, error: ModuleNotFoundError) -> LaunchError | None:
    """The same for an import that failed; None where the module is no extra of ours."""
    module = (error.name or "").partition(".")[0]
    return LaunchError(f"{who} needs {module}: pip install 'malmoi[{EXTRAS[module]}]'") if module in EXTRAS else None
