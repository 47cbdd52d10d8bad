"""KLUE-STS: similarity of two sentences from 0 to 5, the mean of the annotators (paper 3.2).

Scores: Pearson correlation, and F1 of "similar" with both sides made binary at 3; a similarity of exactly 3 counts as
similar. Predictions are not clipped to 0..5, because that would change the correlation. Legend: ``N`` pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpus.documents.errors import BadInput
from finetune.examples import Example, Feature, Prediction, Row
from finetune.metrics import pearson
from finetune.task import Ensembling, Files, HubLayout, Inspection, Task, published_facts
from finetune.tasks import labels
from finetune.tasks.labels import text_inference

FIELDS = ("sentence1", "sentence2")
SIMILAR_FROM, MAX_SIMILARITY = 3.0, 5.0


def score(rows: Sequence[Row]) -> dict[str, float]:
    """``pearsonr`` (-100..100 or nan) and ``f1`` (0..100) of real numbers."""
    return score_pairs(*numbers_of(rows))


def score_pairs(gold_N: NDArray[np.float64], predicted_N: NDArray[np.float64]) -> dict[str, float]:
    """``score`` of the numbers themselves."""
    is_gold_N, is_predicted_N = gold_N >= SIMILAR_FROM, predicted_N >= SIMILAR_FROM
    sides = int(is_gold_N.sum() + is_predicted_N.sum())
    f1 = 2 * int((is_gold_N & is_predicted_N).sum()) / sides if sides else 0.0
    return {"pearsonr": pearson(gold_N, predicted_N), "f1": 100 * f1}


def numbers_of(rows: Sequence[Row]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Golds and predictions."""
    return np.array([row.gold for row in rows], dtype=float), np.array([row.prediction for row in rows], dtype=float)


def similarity_of(record: Mapping[str, Any], where: str) -> float:
    """``real-label`` of a record, 0..5."""
    similarities = record["labels"]
    value = similarities.get("real-label") if isinstance(similarities, dict) else None
    if not labels.is_finite_number(value) or not 0 <= value <= MAX_SIMILARITY:
        raise BadInput(f"{where}: 'labels' should hold 'real-label', a number from 0 to 5, found {value!r}")
    return float(value)


def decode(examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any]) -> list[Prediction]:
    """The numbers as they are."""
    return [Prediction(float(f"{raw:.7g}")) for raw in raws]


def validate_number(example: Example, prediction: Prediction) -> str | None:
    """A finite number."""
    value = prediction.value
    return None if labels.is_finite_number(value) else f"expected a finite number, found {value!r:.60}"


def write(official: Path, values: Mapping[str, Any], target: Path) -> None:
    """Write the official file with predicted ``labels``, clipped to 0..5, the scale of the official format."""
    clipped = {guid: min(max(float(value), 0.0), MAX_SIMILARITY) for guid, value in values.items()}
    predicted = {
        guid: {"label": round(value, 1), "real-label": value, "binary-label": int(value >= SIMILAR_FROM)}
        for guid, value in clipped.items()
    }
    labels.write_field("labels", official, predicted, target)


KLUE_STS = Task(
    name="klue-sts",
    predicts="similarity of two sentences, 0 to 5",
    files=Files("klue-sts-v1.1", "json"),
    read=partial(labels.read_texts, FIELDS, partial(labels.read_golds, "labels", similarity_of)),
    write=write,
    featurize=partial(labels.featurize_texts, FIELDS, None, labels.encode_texts),
    collate=labels.collate_labels,
    model=partial(labels.build_labeller, "number", ()),
    decode=decode,
    score=score,
    select_by="pearsonr",
    published=published_facts(
        "klue-sts", {"featurize": partial(labels.featurize_texts, FIELDS, None, labels.encode_pairs_as_published)}
    ),
    inspection=Inspection(
        tables=lambda rows: {},
        validate=validate_number,
        show=partial(labels.show_fields, FIELDS, form=".2f"),
        distance=lambda row: abs(row.gold - row.prediction),
    ),
    hub=HubLayout(("guid", *FIELDS, "labels"), partial(labels.convert_records, "label")),
    inference=text_inference(FIELDS, None),
    ensembling=Ensembling(partial(labels.merge_mean, "prediction", decode)),
)
