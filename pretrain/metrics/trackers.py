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
    """``log`` takes the named numbers of a step; ``close`` writes the rest."""

    log: Callable[[int, Numbers], Any]
    close: Callable[[], Any]


def require_trackers(config: PretrainConfig) -> None:
    """Raise BadInput before training if the package of a tracker is missing."""
    for name in config.watch.trackers:
        if importlib.util.find_spec(name) is None:
            raise BadInput(
                f"pretrain.watch.trackers: {name} is not installed; `pip install {name}`, or leave it out (the same "
                "numbers are in metrics.jsonl)"
            )


def open_trackers(config: PretrainConfig, folder: Path, resolved: dict[str, Any], first_step: int = 1) -> list[Tracker]:
    """Open the trackers of the recipe in one process; they write into ``folder``. ``resolved``: settings for W&B."""
    require_trackers(config)
    makers = {"tensorboard": _tensorboard, "wandb": _wandb}
    return [makers[name](folder, resolved, first_step) for name in dict.fromkeys(config.watch.trackers)]


def _tensorboard(folder: Path, resolved: dict[str, Any], first_step: int) -> Tracker:
    from torch.utils.tensorboard import SummaryWriter

    purge = first_step if first_step > 1 else None  # hides points that a killed run wrote after its checkpoint
    writer: Any = SummaryWriter(str(folder / "tensorboard"), purge_step=purge)

    def log(step: int, numbers: Numbers) -> None:
        for name, value in numbers.items():
            writer.add_scalar(name, value, step)
        writer.flush()  # so that TensorBoard shows the newest line

    return Tracker(log, writer.close)


def _wandb(folder: Path, resolved: dict[str, Any], first_step: int) -> Tracker:
    import wandb

    note = folder / WANDB_RUN_NAME
    if first_step == 1 or not note.is_file():
        note.write_text(uuid.uuid4().hex[:8], "utf-8")  # the name of the run at W&B
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
