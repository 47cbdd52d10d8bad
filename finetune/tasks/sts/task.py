"""KLUE-STS: similarity of two sentences on a scale from 0 to 5 (paper 3.2). Trained on the mean of the annotators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from corpus.documents.errors import BadInput
from finetune.task import Example, Feature, Files, Hyperparameters, Module, Prediction, Task, Tokenizer
from finetune.tasks import labels
from finetune.tasks.sts.metrics import MOST_SIMILAR, SIMILAR_FROM, score, tables

FIELDS = ("sentence1", "sentence2")


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
    """The numbers as they are: clipping to 0..5 would change the correlation."""
    return [Prediction(float(f"{raw:.7g}")) for raw in raws]


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


KLUE_STS = Task(
    name="klue-sts",
    predicts="similarity of two sentences, 0 to 5",
    files=Files(train="klue-sts-v1.1/klue-sts-v1.1_train.json", dev="klue-sts-v1.1/klue-sts-v1.1_dev.json"),
    read=partial(labels.read_texts, FIELDS, partial(labels.read_golds, "labels", similarity_of)),
    featurize=partial(labels.featurize_texts, FIELDS, None, labels.encode_texts),
    collate=labels.collate_labels,
    model=build,
    decode=decode,
    score=score,
    trivial=predict_mean,
    fault=fault_of_number,
    select_by="pearsonr",
    defaults=Hyperparameters(lr=5e-5, epochs=4, batch_size=32, warmup_share=0.1, max_tokens=128),
    large=Hyperparameters(lr=2e-5, epochs=4, batch_size=32, warmup_share=0.1, max_tokens=128),
    paper_dev={
        "klue/bert-base": {"pearsonr": 91.01, "f1": 83.44},
        "klue/roberta-small": {"pearsonr": 91.23, "f1": 85.54},
        "klue/roberta-base": {"pearsonr": 92.70, "f1": 85.54},
        "klue/roberta-large": {"pearsonr": 93.26, "f1": 85.60},
    },
    as_published={"featurize": partial(labels.featurize_texts, FIELDS, None, labels.encode_pairs_as_published)},
    record=partial(labels.record_gold, "score"),
    tables=tables,
    write=write,
)
