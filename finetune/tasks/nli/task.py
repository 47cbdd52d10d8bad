"""KLUE-NLI: does the premise entail, contradict or leave open the hypothesis (KLUE paper 3.3); accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from finetune.examples import Row
from finetune.hyperparameters import Hyperparameters
from finetune.task import Files, Published, table_36
from finetune.tasks.labels import count_classes, encode_pairs_as_published, featurize_texts, make_label_task

NLI_LABELS = ("entailment", "contradiction", "neutral")
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
    published=Published(
        dev_examples=3_000,
        dev_scores=table_36(accuracy=(79.87, 79.90, 85.50, 89.70)),
        hyperparameters=Hyperparameters(lr=5e-5, epochs=5, batch_size=32, warmup_share=0.1, max_tokens=128),
        large=Hyperparameters(lr=5e-5, epochs=5, batch_size=32, warmup_share=0.2, max_tokens=128),
        quirks={"featurize": partial(featurize_texts, FIELDS, NLI_LABELS, encode_pairs_as_published)},
    ),
)  # fmt: skip
