"""Who else gets the lines of metrics.jsonl: TensorBoard and Weights & Biases, both optional.

Readers of the same numbers, so nothing depends on them. After a resume TensorBoard hides the points behind the
checkpoint; W&B goes on in the same run and keeps the points it has, which a resumed run only repeats.
"""

from __future__ import annotations

import importlib.util
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from corpus.documents.errors import BadInput
from pretrain.config import PretrainConfig

Numbers = Mapping[str, float]

WANDB_PROJECT = "malmoi"
WANDB_RUN_NAME = "wandb-run.txt"  # holds the id of the run to go on with


class Tracker(Protocol):
    """Takes named numbers by step."""

    def log(self, step: int, numbers: Numbers) -> None:
        """Add the numbers of a step; steps never fall."""

    def close(self) -> None:
        """Hand over what is left; nothing may be logged behind it."""


def require_trackers(config: PretrainConfig) -> None:
    """Stop before training where a tracker's package is missing.

    Raises:
        BadInput: it is; names the command that brings it.
    """
    for name in config.watch.trackers:
        if importlib.util.find_spec(name) is None:
            raise BadInput(
                f"pretrain.watch.trackers: {name} is not installed; `pip install {name}`, or leave it out (the same "
                "numbers are in metrics.jsonl)"
            )


def open_trackers(config: PretrainConfig, folder: Path, resolved: dict[str, Any], first_step: int = 1) -> list[Tracker]:
    """Open what ``config.watch.trackers`` names; for one process only.

    Args:
        folder: gets ``tensorboard/`` and ``wandb/``.
        resolved: all settings, for W&B's table of runs.
        first_step: the step that training begins or goes on with.

    Raises:
        BadInput: a package is missing, or W&B does not let us in.
    """
    require_trackers(config)
    makers: dict[str, Callable[[Path, dict[str, Any], int], Tracker]] = {"tensorboard": _TensorBoard, "wandb": _Wandb}
    return [makers[name](folder, resolved, first_step) for name in dict.fromkeys(config.watch.trackers)]


class _TensorBoard:
    def __init__(self, folder: Path, resolved: dict[str, Any], first_step: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        purge = first_step if first_step > 1 else None  # hides what a killed run wrote behind its checkpoint
        self._writer: Any = SummaryWriter(str(folder / "tensorboard"), purge_step=purge)

    def log(self, step: int, numbers: Numbers) -> None:
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()  # so that whoever looks sees the newest line

    def close(self) -> None:
        self._writer.close()


class _Wandb:
    def __init__(self, folder: Path, resolved: dict[str, Any], first_step: int) -> None:
        import wandb

        note = folder / WANDB_RUN_NAME
        if first_step == 1 or not note.is_file():
            note.write_text(uuid.uuid4().hex[:8], "utf-8")  # names the run at W&B, decides no result
        try:
            self._run: Any = wandb.init(
                project=WANDB_PROJECT, dir=str(folder), config=resolved, id=note.read_text("utf-8"), resume="allow"
            )
        except wandb.Error as error:
            raise BadInput(
                f"pretrain.watch.trackers: W&B does not start ({error}); run `wandb login`, set WANDB_MODE=offline, or "
                "leave wandb out"
            ) from error

    def log(self, step: int, numbers: Numbers) -> None:
        self._run.log(dict(numbers), step=step)

    def close(self) -> None:
        self._run.finish()
