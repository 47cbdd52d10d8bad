"""KLUE-STS: similarity of two sentences on a scale from 0 to 5 (paper 3.2). Trained on the mean of the annotators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from corpus.documents.errors import BadInput
from finetune.data.files import text_of
from finetune.task import Example, Feature, Files, Hyperparameters, Prediction, Task
from finetune.tasks.labels import (
    PairEncoder,
    collate_labels,
    encode_pairs_as_published,
    encode_texts,
    is_finite_number,
    read_golds,
    record_gold,
    write_records,
)
from finetune.tasks.sts.metrics import MOST_SIMILAR, SIMILAR_FROM, score, tables

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedTokenizerBase


def read_sts(path: Path) -> list[Example]:
    """Examples with ``sentence1`` and ``sentence2``; gold is ``real-label``, 0..5."""
    return [
        Example(
            guid=record["guid"],
            gold=gold,
            inputs={key: text_of(record, key, where) for key in ("sentence1", "sentence2")},
        )
        for where, record, gold in read_golds(path, "labels", _similarity)
    ]


def _similarity(record: Mapping[str, Any], where: str) -> float:
    labels = record["labels"]
    value = labels.get("real-label") if isinstance(labels, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_SIMILAR:
        raise BadInput(f"{where}: 'labels' should hold 'real-label', a number from 0 to 5, found {value!r}")
    return float(value)


def featurize_sts(
    examples: Sequence[Example],
    tokenizer: PreTrainedTokenizerBase,
    max_tokens: int,
    is_training: bool,
    encode: PairEncoder = encode_texts,
) -> list[Feature]:
    """``[CLS] sentence1 [SEP] sentence2 [SEP]``, too long a pair cut by ``encode``."""
    first, second = ([example.inputs[key] for example in examples] for key in ("sentence1", "sentence2"))
    features = encode(tokenizer, first, second, max_tokens)
    for feature in features:
        gold = examples[feature["example"]].gold
        if gold is not None:
            feature["label"] = gold
    return features


def load_sts_model(name: str, tokenizer: PreTrainedTokenizerBase) -> nn.Module:
    """Encoder and a head with one output; squared error."""
    from finetune.heads.labels import load_text_regressor

    return load_text_regressor(name, tokenizer)


def decode_sts(examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any]) -> list[Prediction]:
    """The numbers as they are: clipping to 0..5 would change the correlation."""
    return [Prediction(float(f"{raw:.7g}")) for raw in raws]


def predict_mean(training: Sequence[Example], examples: Sequence[Example]) -> list[Prediction]:
    """Baseline: the mean of the training pairs (no correlation is defined for a constant)."""
    mean = fmean(example.gold for example in training)
    return [Prediction(mean) for _ in examples]


def fault_of_number(example: Example, prediction: Prediction) -> str | None:
    """A finite number."""
    value = prediction.value
    return None if is_finite_number(value) else f"expected a finite number, found {value!r:.60}"


def write_sts(official: Path, values: Mapping[str, Any], target: Path) -> None:
    """The official file again with predicted ``labels``: clipped to 0..5, the scale of the official layout.

    Raises:
        BadInput: a pair without a prediction, or one that is no finite number.
    """
    write_records(official, values, target, _put_similarity)


def _put_similarity(record: dict[str, Any], value: Any, where: str) -> None:
    if not is_finite_number(value):
        raise BadInput(f"{where}: the prediction is {value!r}; expected a finite number")
    clipped = min(max(float(value), 0.0), MOST_SIMILAR)
    is_similar = int(clipped >= SIMILAR_FROM)
    record["labels"] = {"label": round(clipped, 1), "real-label": clipped, "binary-label": is_similar}


KLUE_STS = Task(
    name="klue-sts",
    predicts="similarity of two sentences, 0 to 5",
    files=Files(train="klue-sts-v1.1/klue-sts-v1.1_train.json", dev="klue-sts-v1.1/klue-sts-v1.1_dev.json"),
    read=read_sts,
    featurize=featurize_sts,
    collate=collate_labels,
    model=load_sts_model,
    decode=decode_sts,
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
    as_published={"featurize": partial(featurize_sts, encode=encode_pairs_as_published)},
    record=record_gold("score"),
    tables=tables,
    write=write_sts,
)
