"""Checks before the command starts: a supported system, and that all five packages are ours. Imports none of them.

Top-level folders are the import packages, and names such as ``tokenizer`` also exist on PyPI. Such a package may come
before ours on the path, or pip may have merged its files into our folder; both would fail far from the cause.
"""

from __future__ import annotations

import sys
from collections.abc import Set
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("corpus", "tokenizer", "pretrain", "finetune", "launch")
HOME = Path(__file__).resolve().parents[2]


def check_start() -> None:
    """Exit with one sentence if the command cannot work."""
    problem = unsupported_system() or foreign_package()
    if problem:
        print(f"malmoi: {problem}", file=sys.stderr)
        sys.exit(2)


def unsupported_system(platform: str = sys.platform) -> str | None:
    """The error message on systems other than Linux and macOS."""
    if platform in ("linux", "darwin"):
        return None
    return f"malmoi runs on Linux and macOS, not on {platform}; on Windows install it inside WSL (`wsl --install`)"


def foreign_package(home: Path = HOME) -> str | None:
    """The error message unless all five packages resolve inside ``home`` and hold only our files."""
    for name in PACKAGES:
        spec = find_spec(name)
        places = [Path(place).resolve() for place in (spec.submodule_search_locations or [])] if spec else []
        if home / name not in places[:1]:
            where = places[0] if places else (spec.origin if spec else "nowhere")
            return (
                f"the package `{name}` resolves to {where}, not to malmoi's {home / name}; uninstall the other "
                f"`{name}` package, or start malmoi from a virtual environment of its own"
            )
    try:
        return _merged_files(distribution("malmoi"), home)
    except PackageNotFoundError:  # a clone that is not installed
        return None


def _merged_files(ours: Distribution, home: Path) -> str | None:
    """Compare with the wheel's file list; an editable installation has none, and its folder holds only our files."""
    modules = [file for file in ours.files or () if file.parts[0] in PACKAGES and file.suffix == ".py"]
    sizes = {file.as_posix(): file.size for file in modules if file.size is not None}
    if not sizes:
        return None
    paths = [path for name in PACKAGES for path in (home / name).rglob("*.py")]
    present = {path.relative_to(home).as_posix(): path.stat().st_size for path in paths}
    missing = sorted(sizes.keys() - present.keys())
    foreign = sorted(name for name, size in present.items() if sizes.get(name) != size)
    other = _owner(frozenset(foreign), home)
    if not other and not missing:
        return None
    what = f"{other} has added files to it ({foreign[0]})" if other else f"{missing[0]} is missing"
    folder = (foreign if other else missing)[0].split("/")[0]
    undo = f"pip uninstall -y {other} && " if other else ""
    return (
        f"the package `{folder}` differs from the installation: {what}; run `{undo}pip install --force-reinstall "
        "--no-deps malmoi`, best in a virtual environment of its own"
    )


def _owner(names: Set[str], home: Path) -> str | None:
    """The other distribution that lists one of the files; None for files that the user added."""
    others = (other for other in distributions(path=[str(home)]) if names and other.name != "malmoi")
    return next((o.name for o in others if any(file.as_posix() in names for file in o.files or ())), None)
