"""What is installed by name only: modules that a verb imports, and the extra of our distribution that brings each."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

from launch.errors import LaunchError

EXTRAS = {
    "torch": "train", "transformers": "train", "deepspeed": "train", "accelerate": "train",
    "matplotlib": "plots", "datasets": "hub", "datasketch": "near", "kiwipiepy": "kiwi", "kss": "kss",
    "datatrove": "cluster", "ray": "ray", "tensorboard": "trackers", "wandb": "trackers",
    "presidio_analyzer": "presidio", "sklearn": "dev", "seqeval": "dev",
}  # fmt: skip
NEEDED_BY_STAGE = {
    "tokens": ("transformers",),
    "pretrain": ("torch", "transformers", "deepspeed"),
    "model": ("torch", "transformers"),
    "finetune": ("torch", "transformers", "accelerate"),
}


def missing_modules(stages: Iterable[str]) -> list[str]:
    """What the stages import and is not installed, torch first, which people know."""
    needed = dict.fromkeys(module for stage in stages for module in NEEDED_BY_STAGE.get(stage, ()))
    return sorted((module for module in needed if find_spec(module) is None), key=lambda module: module != "torch")


def require(who: str, modules: Iterable[str]) -> None:
    """Raise ``LaunchError`` with what to install unless all modules are there."""
    for module in modules:
        if find_spec(module) is None:
            raise LaunchError(f"{who} needs {module}: pip install 'malmoi[{EXTRAS[module]}]'")


def explain_missing_module(who: str, error: ModuleNotFoundError) -> LaunchError | None:
    """The same for an import that failed; None where the module is no extra of ours."""
    module = (error.name or "").partition(".")[0]
    return LaunchError(f"{who} needs {module}: pip install 'malmoi[{EXTRAS[module]}]'") if module in EXTRAS else None
