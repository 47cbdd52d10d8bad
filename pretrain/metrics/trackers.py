"""Optional trackers that also receive the lines of metrics.jsonl: TensorBoard and Weights & Biases.

After a resume, TensorBoard hides the points after the checkpoint. W&B resumes the same run and keeps its points.
"""

from __future__ import annotations

import importlib.util
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from corpus.documents.errors import BadInput
from pretrain.config import PretrainConfig

Numbers = Mapping[str, float]
WANDB_PROJECT = "malmoi"
WANDB_RUN_NAME = "wandb-run.txt"  # holds the id of the run to resume


class Tracker(NamedTuple):
    """``log`` takes the named numbers of a step (steps never fall); ``close`` hands over what is left."""

    log: Callable[[int, Numbers], Any]
    close: Callable[[], Any]


def require_trackers(config: PretrainConfig) -> None:
    """Stop before training (BadInput) where a tracker's package is missing."""
    for name in config.watch.trackers:
        if importlib.util.find_spec(name) is None:
            raise BadInput(
                f"pretrain.watch.trackers: {name} is not installed; `pip install {name}`, or leave it out (the same "
                "numbers are in metrics.jsonl)"
            )


def open_trackers(config: PretrainConfig, folder: Path, resolved: dict[str, Any], first_step: int = 1) -> list[Tracker]:
    """Open what ``config.watch.trackers`` names, in one process only; ``folder`` gets ``tensorboard/`` and ``wandb/``.

    ``resolved`` is for W&B's table of runs; training starts or resumes with ``first_step``.
    """
    require_trackers(config)
    makers = {"tensorboard": _tensorboard, "wandb": _wandb}
    return [makers[name](folder, resolved, first_step) for name in dict.fromkeys(config.watch.trackers)]


def _tensorboard(folder: Path, resolved: dict[str, Any], first_step: int) -> Tracker:
    from torch.utils.tensorboard import SummaryWriter

    purge = first_step if first_step > 1 else None  # hides what a killed run wrote after its checkpoint
    writer: Any = SummaryWriter(str(folder / "tensorboard"), purge_step=purge)

    def log(step: int, numbers: Numbers) -> None:
        for name, value in numbers.items():
            writer.add_scalar(name, value, step)
        writer.flush()  # so that whoever looks sees the newest line

    return Tracker(log, writer.close)


def _wandb(folder: Path, resolved: dict[str, Any], first_step: int) -> Tracker:
    import wandb

    note = folder / WANDB_RUN_NAME
    if first_step == 1 or not note.is_file():
        note.write_text(uuid.uuid4().hex[:8], "utf-8")  # names the run at W&B, decides no result
    try:
        run: Any = wandb.init(
            project=WANDB_PROJECT, dir=str(folder), config=resolved, id=note.read_text("utf-8"), resume="allow"
        )
    except wandb.Error as error:
        raise BadInput(
            f"pretrain.watch.trackers: W&B does not start ({error}); run `wandb login`, set WANDB_MODE=offline, or "
            "leave wandb out"
        ) from error
    return Tracker(lambda step, numbers: run.log(dict(numbers), step=step), run.finish)
