"""KLUE-STS: similarity of two sentences from 0 to 5, the mean of the annotators (paper 3.2).

Scored by Pearson correlation, nan for a constant prediction, and by F1 of "similar", both sides made binary at 3 (3
itself is similar). Predictions are not clipped to 0..5: that would change the correlation. Legend: ``N`` pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpus.documents.errors import BadInput
from finetune.examples import Example, Feature, Module, Prediction, Row, Shown, Table, Tokenizer
from finetune.hyperparameters import Hyperparameters
from finetune.metrics import pearson
from finetune.task import Files, HubLayout, Member, Merging, Task, table_36
from finetune.tasks import labels
from finetune.tasks.new_text import use_of_texts

FIELDS = ("sentence1", "sentence2")
SIMILAR_FROM, MOST_SIMILAR = 3.0, 5.0


def similarity_of(record: Mapping[str, Any], where: str) -> float:
    """``real-label`` of a record, 0..5."""
    found = record["labels"]
    value = found.get("real-label") if isinstance(found, dict) else None
    if not labels.is_finite_number(value) or not 0 <= value <= MOST_SIMILAR:
        raise BadInput(f"{where}: 'labels' should hold 'real-label', a number from 0 to 5, found {value!r}")
    return float(value)


def build(encoder: str, tokenizer: Tokenizer) -> Module:
    """Encoder and a head with one output; squared error."""
    from finetune.heads.labels import load_text_regressor

    return load_text_regressor(encoder, tokenizer)


def decode(examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any]) -> list[Prediction]:
    """The numbers as they are."""
    return [Prediction(float(f"{raw:.7g}")) for raw in raws]


def merge(members: Sequence[Member]) -> list[Prediction]:
    """The mean of the members' numbers."""
    return decode((), (), np.mean([[record["prediction"] for record in member] for member in members], axis=0))


def predict_mean(training: Sequence[Example], examples: Sequence[Example]) -> list[Prediction]:
    """Baseline: the mean of the training pairs (no correlation is defined for a constant)."""
    mean = fmean(example.gold for example in training)
    return [Prediction(mean) for _ in examples]


def fault_of_number(example: Example, prediction: Prediction) -> str | None:
    """A finite number."""
    value = prediction.value
    return None if labels.is_finite_number(value) else f"expected a finite number, found {value!r:.60}"


def write(official: Path, values: Mapping[str, Any], target: Path) -> None:
    """The official file again with predicted ``labels``: clipped to 0..5, the scale of the official layout."""
    clipped = {guid: min(max(float(value), 0.0), MOST_SIMILAR) for guid, value in values.items()}
    predicted = {
        guid: {"label": round(value, 1), "real-label": value, "binary-label": int(value >= SIMILAR_FROM)}
        for guid, value in clipped.items()
    }
    labels.write_field("labels", official, predicted, target)


def show(example: Example, row: Row) -> Shown:
    """Both sentences and both numbers."""
    return {name: example.inputs[name] for name in FIELDS}, [f"{row.gold:.2f}"], [f"{row.prediction:.2f}"]


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


def tables(rows: Sequence[Row]) -> dict[str, Table]:
    """The table "gold similarity": for each band of gold scores that occurs (0-1 … 4-5, the upper end with the next
    band, 5 with the last) its pairs, and the mean and root mean square of prediction minus gold."""
    gold_N, predicted_N = numbers_of(rows)
    band_N = np.clip(gold_N.astype(int), 0, int(MOST_SIMILAR) - 1)
    by_band = {band: (predicted_N - gold_N)[band_N == band] for band in np.unique(band_N).tolist()}
    lines = [
        {
            "gold": f"{band}-{band + 1}", "n": len(errors), "mean error": float(errors.mean()),
            "rmse": float(np.sqrt(np.square(errors).mean())),
        }
        for band, errors in by_band.items()
    ]  # fmt: skip
    return {"gold similarity": lines}


KLUE_STS = Task(
    name="klue-sts",
    predicts="similarity of two sentences, 0 to 5",
    files=Files("klue-sts-v1.1", "json"),
    hub=HubLayout(("guid", *FIELDS, "labels"), partial(labels.convert_records, "label")),
    dev_examples=519,
    read=partial(labels.read_texts, FIELDS, partial(labels.read_golds, "labels", similarity_of)),
    featurize=partial(labels.featurize_texts, FIELDS, None, labels.encode_texts),
    as_published={"featurize": partial(labels.featurize_texts, FIELDS, None, labels.encode_pairs_as_published)},
    collate=labels.collate_labels,
    model=build,
    decode=decode,
    merging=Merging(merge),
    score=score,
    tables=tables,
    trivial=predict_mean,
    record=partial(labels.record_gold, "score"),
    write=write,
    fault=fault_of_number,
    show=show,
    use=use_of_texts(FIELDS, None),
    distance=lambda row: abs(row.gold - row.prediction),
    select_by="pearsonr",
    defaults=Hyperparameters(lr=5e-5, epochs=4, batch_size=32, warmup_share=0.1, max_tokens=128),
    large=Hyperparameters(lr=2e-5, epochs=4, batch_size=32, warmup_share=0.1, max_tokens=128),
    paper_dev=table_36(pearsonr=(91.01, 91.23, 92.70, 93.26), f1=(83.44, 85.54, 85.54, 85.60)),
)
