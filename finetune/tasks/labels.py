"""What the tasks with one label a text share: encoding, batches, decoding, and the majority baseline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from finetune.padding import pad_inputs
from finetune.task import Example, Feature, Prediction

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedTokenizerBase


def encode_texts(
    tokenizer: PreTrainedTokenizerBase, first: Sequence[str], second: Sequence[str] | None, max_tokens: int
) -> list[Feature]:
    """Features ``[CLS] first [SEP]`` or ``[CLS] first [SEP] second [SEP]``; the longer text loses its end first."""
    encoded = tokenizer(
        list(first), list(second) if second is not None else None, truncation="longest_first", max_length=max_tokens,
        return_token_type_ids=True, return_attention_mask=False,
    )  # fmt: skip
    rows = zip(encoded["input_ids"], encoded["token_type_ids"], strict=True)
    return [{"example": i, "input_ids": ids, "token_type_ids": types} for i, (ids, types) in enumerate(rows)]


def with_labels(features: list[Feature], examples: Sequence[Example], labels: Sequence[str]) -> list[Feature]:
    """The features with the id of their example's label under ``label``."""
    ids = {label: id_ for id_, label in enumerate(labels)}
    return [{**feature, "label": ids[examples[feature["example"]].gold]} for feature in features]


def record_label(example: Example, features: Sequence[Feature], max_tokens: int) -> dict[str, Any]:
    """Inputs and the class of an example."""
    (feature,) = features
    return {
        "input_ids": feature["input_ids"],
        "token_type_ids": feature["token_type_ids"],
        "labels": {"class": example.gold},
    }


def collate_labels(features: Sequence[Feature], pad_id: int) -> dict[str, NDArray[Any]]:
    """Padded inputs and ``labels`` (B): ids as int64, numbers as float32."""
    labels_B = np.array([feature["label"] for feature in features])
    is_number = labels_B.dtype.kind == "f"
    return {**pad_inputs(features, pad_id), "labels": labels_B.astype(np.float32 if is_number else np.int64)}


def decode_labels(
    labels: Sequence[str],
) -> Callable[[Sequence[Example], Sequence[Feature], Sequence[Any]], list[Prediction]]:
    """Decoder from probabilities to the likeliest label; ``scores`` are the probabilities in ``labels`` order."""

    def decode(examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any]) -> list[Prediction]:
        return [Prediction(labels[int(raw.argmax())], [float(f"{p:.7g}") for p in raw]) for raw in raws]

    return decode


def predict_majority(
    labels: Sequence[str],
) -> Callable[[Sequence[Example], Sequence[Example]], list[Prediction]]:
    """Baseline: the most frequent training label (the first of equals), with training shares as scores."""

    def predict(training: Sequence[Example], examples: Sequence[Example]) -> list[Prediction]:
        counts = Counter(example.gold for example in training)
        best = max(labels, key=lambda label: counts[label])
        shares = [counts[label] / len(training) for label in labels]
        return [Prediction(best, shares) for _ in examples]

    return predict


def text_labeller(labels: Sequence[str]) -> Callable[[str, PreTrainedTokenizerBase], nn.Module]:
    """Builder of an encoder with a head over ``labels``."""

    def load(name: str, tokenizer: PreTrainedTokenizerBase) -> nn.Module:
        from finetune.heads.labels import load_text_labeller

        return load_text_labeller(name, tokenizer, labels)

    return load
