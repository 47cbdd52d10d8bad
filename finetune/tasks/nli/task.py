"""KLUE-NLI: does the premise entail, contradict or leave open the hypothesis (KLUE paper 3.3); accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from finetune.examples import Row
from finetune.task import Files, published_facts
from finetune.task_names import klue_facts
from finetune.tasks.labels import count_classes, encode_pairs_as_published, featurize_texts, make_label_task

NLI_LABELS = tuple(klue_facts("klue-nli")["labels"])
FIELDS = ("premise", "hypothesis")


def score_nli(rows: Sequence[Row]) -> dict[str, float]:
    """``accuracy``, 0..100, of label names."""
    return {"accuracy": 100 * sum(counts.right for counts in count_classes(rows).values()) / len(rows)}


KLUE_NLI = make_label_task(
    NLI_LABELS, "gold_label", FIELDS,
    name="klue-nli",
    predicts="entailment, contradiction or neutral, of two sentences",
    files=Files("klue-nli-v1.1", "json"),
    score=score_nli,
    select_by="accuracy",
    published=published_facts(
        "klue-nli", {"featurize": partial(featurize_texts, FIELDS, NLI_LABELS, encode_pairs_as_published)}
    ),
)  # fmt: skip
