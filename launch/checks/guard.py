"""Checks before the command starts: a supported system, and that all five packages are ours. Imports none of them.

Top-level folders are the import packages, and names such as ``tokenizer`` also exist on PyPI. Such a package may come
before ours on the path, which would fail far from the cause.
"""

from __future__ import annotations

import sys
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
    """The error message unless all five packages resolve inside ``home``."""
    for name in PACKAGES:
        spec = find_spec(name)
        places = [Path(place).resolve() for place in (spec.submodule_search_locations or [])] if spec else []
        if home / name not in places[:1]:
            where = places[0] if places else (spec.origin if spec else "nowhere")
            return (
                f"the package `{name}` resolves to {where}, not to malmoi's {home / name}; uninstall the other "
                f"`{name}` package, or start malmoi from a virtual environment of its own"
            )
    return None
