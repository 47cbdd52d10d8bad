"""What counts as the user's problem, a missing extra among them: one sentence and exit code 2.

Everything else is ours and shows its traceback.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

from corpus.documents.errors import BadInput, is_full_disk
from pretrain.interruption import REQUEUE_CODE, Interrupted

EXTRAS = {  # modules that a verb imports, and the extra of our distribution that brings each
    "torch": "train", "transformers": "train", "accelerate": "train", "deepspeed": "deepspeed",
    "datasets": "hub", "datasketch": "near", "kiwipiepy": "kiwi", "kss": "kss",
    "datatrove": "cluster", "ray": "ray", "tensorboard": "trackers", "wandb": "trackers",
    "optuna": "search", "peft": "lora", "inspect_ai": "llm", "openai": "llm", "sacrebleu": "llm",
    "presidio_analyzer": "presidio", "gradio": "demo", "sklearn": "dev", "seqeval": "dev",
}  # fmt: skip
NEEDED_BY_STAGE = {
    "tokens": ("transformers",),
    "pretrain": ("torch", "transformers"),
    "model": ("torch", "transformers"),
    "finetune": ("torch", "transformers", "accelerate"),
    "finetune-search": ("torch", "transformers", "accelerate"),
}


class LaunchError(ValueError):
    """A recipe, a run folder or a command line that cannot be used; the message says what to do."""


USER_ERRORS = (LaunchError, BadInput, Interrupted, OSError)  # answered with their message alone


def is_user_error(error: BaseException) -> bool:
    """Whether the message alone answers it: one of the above, or any library's way of saying that the disk is full."""
    return isinstance(error, USER_ERRORS) or is_full_disk(error)


def exit_code(error: BaseException) -> int:
    """2 for what the user must change; another one for what goes on when the same command is run again."""
    return REQUEUE_CODE if isinstance(error, Interrupted) else 2


def error_message(error: BaseException) -> str:
    """The message for the console; operating system errors get their file in front."""
    file = error.filename if isinstance(error, OSError) else None
    if is_full_disk(error):
        where = f" for {file}" if file else ""
        return f"no space left on the disk{where}; make room and run the same command again, it goes on from there"
    if isinstance(error, OSError) and error.strerror:
        where = f"{file}: " if file else ""
        return f"{where}{error.strerror.lower()}; check the path, its permissions and the free space"
    return str(error)


def missing_modules(stages: Iterable[str]) -> list[str]:
    """What the stages import and is not installed, torch first, which people know."""
    needed = dict.fromkeys(module for stage in stages for module in NEEDED_BY_STAGE.get(stage, ()))
    return sorted((module for module in needed if find_spec(module) is None), key=lambda module: module != "torch")


def require(who: str, modules: Iterable[str]) -> None:
    """Raise ``LaunchError`` with what to install unless all modules are there."""
    for module in modules:
        if find_spec(module) is None:
            raise _missing(who, module)


def explain_missing_module(who: str, error: ModuleNotFoundError) -> LaunchError | None:
    """The same for an import that failed; None where the module is no extra of ours."""
    module = (error.name or "").partition(".")[0]
    return _missing(who, module) if module in EXTRAS else None


def _missing(who: str, module: str) -> LaunchError:
    return LaunchError(f"{who} needs {module}: pip install 'malmoi[{EXTRAS[module]}]'")
