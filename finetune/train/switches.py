"""Which training switches cannot go together, said before anything is trained."""

from __future__ import annotations

from corpus.documents.errors import BadInput
from finetune.task import Hyperparameters, Task

LABELLING = {"ynat", "klue-nli", "klue-re", "klue-ner"}  # a distribution over labels, of a text or a token
OWN_LABELLING = {"label", "pair", "tagging"}


def check_switches(task: Task, settings: Hyperparameters, layers: int) -> None:
    """``BadInput`` where a switch would do nothing, or something that nobody means; ``layers``: of the encoder."""
    if settings.average != "none" and settings.average_after >= settings.epochs:
        raise BadInput(
            f"finetune.overrides.{task.name}: average={settings.average} begins after {settings.average_after} of "
            f"{settings.epochs} epochs, so nothing is averaged; lower average_after or raise epochs"
        )
    is_labelling = task.own["kind"] in OWN_LABELLING if task.own else task.name in LABELLING
    if settings.r_drop and not is_labelling:
        raise BadInput(
            f"finetune.overrides.{task.name}: r_drop compares what two passes say of each label, and {task.name} is no "
            "task of labels; set it for ynat, klue-nli, klue-re, klue-ner, or own ones of their kinds"
        )
    if settings.reset_layers > layers:
        raise BadInput(
            f"finetune.overrides.{task.name}: reset_layers is {settings.reset_layers}, but the encoder has {layers} "
            'layers; for an encoder without pretraining write "fresh:" before its name'
        )
