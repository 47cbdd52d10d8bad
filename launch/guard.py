"""Refuse to start when one of our five package names belongs to somebody else.

Top-level folders are the import packages, and names such as ``tokenizer`` exist on PyPI too. Importing the wrong one
would fail far away from the cause, so the command looks first, without importing anything.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from launch.errors import LaunchError

PACKAGES = ("corpus", "tokenizer", "pretrain", "finetune", "launch")
HOME = Path(__file__).resolve().parents[1]


def refuse_foreign_packages(home: Path = HOME) -> None:
    """Raise ``LaunchError`` unless all five packages resolve inside ``home``."""
    for name in PACKAGES:
        spec = find_spec(name)
        found = [Path(place).resolve() for place in (spec.submodule_search_locations or [])] if spec else []
        if home / name not in found[:1]:
            where = found[0] if found else (spec.origin if spec else "nowhere")
            raise LaunchError(
                f"the package `{name}` resolves to {where}, not to malmoi's {home / name}; uninstall the other "
                f"`{name}` package, or start malmoi from a virtual environment of its own"
            )
