"""YNAT: topic of a news headline, 7 classes (KLUE paper 3.1).

The score is the macro F1 over the classes that occur in gold or prediction; a class that is only predicted has F1 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from finetune.examples import Row
from finetune.hyperparameters import Hyperparameters
from finetune.task import Files, Published, table_36
from finetune.tasks.labels import count_classes, macro_f1, make_label_task

YNAT_LABELS = ("정치", "경제", "사회", "생활문화", "세계", "IT과학", "스포츠")


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
    published=Published(
        dev_examples=9_107,
        dev_scores=table_36(macro_f1=(86.59, 85.53, 86.03, 87.21)),
        hyperparameters=Hyperparameters(lr=5e-5, epochs=4, batch_size=32, warmup_share=0.1, max_tokens=128),
        large=Hyperparameters(lr=5e-5, epochs=4, batch_size=32, warmup_share=0.2, max_tokens=128),
    ),
)  # fmt: skip
