"""YNAT: topic of a news headline, 7 classes (KLUE paper 3.1).

The score is the macro F1 over the classes that occur in gold or prediction; a class that is only predicted has F1 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from finetune.examples import Row
from finetune.task import Files, published_facts
from finetune.task_names import klue_facts
from finetune.tasks.labels import count_classes, macro_f1, make_label_task

YNAT_LABELS = tuple(klue_facts("ynat")["labels"])


def score_ynat(rows: Sequence[Row]) -> dict[str, float]:
    """``macro_f1``, 0..100, of label names."""
    return {"macro_f1": macro_f1(count_classes(rows).values())}


YNAT = make_label_task(
    YNAT_LABELS, "label", ("title",),
    name="ynat",
    predicts="topic of a news headline, 7 classes",
    files=Files("ynat-v1.1", "json"),
    score=score_ynat,
    select_by="macro_f1",
    published=published_facts("ynat"),
)  # fmt: skip
