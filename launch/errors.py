"""Errors that the user can fix: one message and exit code 2. Every other error is a bug and shows its traceback."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

from corpus.documents.errors import BadInput, is_full_disk
from pretrain.interruption import Interrupted

EXTRAS = {  # optional modules, each with the extra of our distribution that installs it
    "torch": "train", "transformers": "train", "accelerate": "train", "deepspeed": "deepspeed", "datasets": "hub",
    "kiwipiepy": "kiwi", "ray": "ray", "peft": "lora", "inspect_ai": "llm", "openai": "llm", "sacrebleu": "llm",
    "sentence_transformers": "embed", "bm25s": "embed", "krippendorff": "benchmark", "crowdkit": "benchmark",
    "cleanlab": "benchmark", "rapidfuzz": "llm", "sklearn": "benchmark", "scipy": "benchmark",
    "gradio": "demo", "fastapi": "serve", "uvicorn": "serve", "seqeval": "dev",
}  # fmt: skip
NEEDED_BY_STAGE = {
    "tokens": ("transformers",),
    "pretrain": ("torch", "transformers"),
    "model": ("torch", "transformers"),
    "finetune": ("torch", "transformers", "accelerate"),
    "finetune-search": ("torch", "transformers", "accelerate"),
    "embed": ("torch", "transformers", "accelerate", "sentence_transformers", "bm25s"),
}


class LaunchError(ValueError):
    """An unusable recipe, run folder or command line; the message says what to do."""


USER_ERRORS = (LaunchError, BadInput, Interrupted, OSError)


def is_user_error(error: BaseException) -> bool:
    """Whether the user can fix it: one of ``USER_ERRORS``, or any library's report of a full disk."""
    return isinstance(error, USER_ERRORS) or is_full_disk(error)


def error_message(error: BaseException) -> str:
    """The message for the console; operating system errors start with their file."""
    file = error.filename if isinstance(error, OSError) else None
    if is_full_disk(error):
        where = f" for {file}" if file else ""
        return f"no space left on the disk{where}; make room, then run the same command again to resume"
    if isinstance(error, OSError) and error.strerror:
        where = f"{file}: " if file else ""
        advice = "the path" if isinstance(error, FileNotFoundError) else "the path and its permissions"
        return f"{where}{error.strerror.lower()}; check {advice}"
    return str(error)


def missing_modules(stages: Iterable[str]) -> list[str]:
    """Modules that the stages import and that are not installed, torch first."""
    needed = dict.fromkeys(module for stage in stages for module in NEEDED_BY_STAGE.get(stage, ()))
    return sorted((module for module in needed if find_spec(module) is None), key=lambda module: module != "torch")


def require(user: str, modules: Iterable[str]) -> None:
    """Raise ``LaunchError`` with what to install unless all modules are installed; ``user``: what needs them."""
    for module in modules:
        if find_spec(module) is None:
            raise _missing(user, module)


def explain_missing_module(user: str, error: ModuleNotFoundError) -> LaunchError | None:
    """The same for an import that failed; None if no extra of ours installs the module."""
    module = (error.name or "").partition(".")[0]
    return _missing(user, module) if module in EXTRAS else None


def _missing(user: str, module: str) -> LaunchError:
    return LaunchError(f"{user} needs {module}: pip install 'malmoi[{EXTRAS[module]}]'")
