"""Which training switches cannot go together, said before anything is trained."""

from __future__ import annotations

from corpus.documents.errors import BadInput
from finetune.task import Hyperparameters, Task


def check_switches(task: Task, settings: Hyperparameters) -> None:
    """``BadInput`` where a switch would do nothing, or something that nobody means."""
    if settings.average != "none" and settings.average_after >= settings.epochs:
        raise BadInput(
            f"finetune.overrides.{task.name}: average={settings.average} begins after {settings.average_after} of "
            f"{settings.epochs} epochs, so nothing is averaged; lower average_after or raise epochs"
        )
