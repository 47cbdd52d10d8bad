"""What the tasks with one label a text share: reading, encoding, batches, decoding, the majority baseline, writing.

A file without labels (a test file) has gold None in every example and no labels in its batches.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from corpus.documents.errors import BadInput
from corpus.documents.whole_files import write_whole
from finetune.data.files import label_of, read_records
from finetune.task import Example, Feature, Prediction
from finetune.tasks.padding import pad_inputs

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedTokenizerBase

Gold = TypeVar("Gold")
# (tokenizer, first texts, second texts, max_tokens) to one feature a pair
PairEncoder = Callable[["PreTrainedTokenizerBase", Sequence[str], Sequence[str], int], list[Feature]]


def read_labelled(path: Path, key: str, labels: Sequence[str]) -> list[tuple[str, dict[str, Any], str | None]]:
    """The records of a JSON file with ``where`` and the label under ``key``; see ``read_golds``."""
    return read_golds(path, key, lambda record, where: label_of(record, key, labels, where))


def read_golds(
    path: Path, key: str, gold_of: Callable[[dict[str, Any], str], Gold]
) -> list[tuple[str, dict[str, Any], Gold | None]]:
    """The records of a JSON file, each with ``where`` (for messages) and its gold; None in a file without labels.

    Raises:
        BadInput: some records have ``key`` and some lack it, or what ``gold_of`` raises.
    """
    records = read_records(path)
    unlabelled = [where for where, record in records if key not in record]
    if len(unlabelled) == len(records):
        return [(where, record, None) for where, record in records]
    if unlabelled:
        raise BadInput(f"{unlabelled[0]}: no '{key}', which other records have; label every record of a file or none")
    return [(where, record, gold_of(record, where)) for where, record in records]


def encode_texts(
    tokenizer: PreTrainedTokenizerBase,
    first: Sequence[str],
    second: Sequence[str] | None = None,
    max_tokens: int | None = None,
) -> list[Feature]:
    """Features ``[CLS] first [SEP]`` or ``[CLS] first [SEP] second [SEP]`` in the layout of the tokenizer.

    Args:
        max_tokens: the longer text loses its end until the whole has so many ids; None: nothing is cut.

    Returns:
        ``input_ids`` and ``token_type_ids``; the model leaves those out where its encoder has no segments.
    """
    encoded = tokenizer(
        list(first), list(second) if second is not None else None, max_length=max_tokens,
        truncation="longest_first" if max_tokens else False,
        return_token_type_ids=True, return_attention_mask=False, verbose=False,
    )  # fmt: skip
    rows = zip(encoded["input_ids"], encoded["token_type_ids"], strict=True)
    return [{"example": i, "input_ids": ids, "token_type_ids": types} for i, (ids, types) in enumerate(rows)]


def encode_pairs_as_published(
    tokenizer: PreTrainedTokenizerBase, first: Sequence[str], second: Sequence[str], max_tokens: int
) -> list[Feature]:
    """Features ``[CLS] first [SEP] second [SEP]`` of at most ``max_tokens`` ids, as the published code cuts them.

    Its tokenizer takes one token at a time off the longer text, off the second where both are equal; the fast tokenizer
    shares what is left otherwise when the second text is the longer one (62 and 63 of 125 tokens, not 63 and 62). No
    pair of the official dev sets reaches 128 tokens, so the protocols agree on those. Source: transformers 3.5.1.
    """
    features = encode_texts(tokenizer, first, second)
    for index, feature in enumerate(features):
        if len(feature["input_ids"]) > max_tokens:
            sides = tokenizer(first[index], second[index], verbose=False).sequence_ids(0)
            features[index] = keep_tokens(feature, cut_pair(sides, max_tokens))
    return features


def cut_pair(sides: Sequence[int | None], max_tokens: int) -> list[int]:
    """Positions that stay: every special token, and of each text its beginning.

    Args:
        sides: of each token 0 (first text), 1 (second text) or None (special).
    """
    room = max_tokens - sides.count(None)
    lengths = {0: sides.count(0), 1: sides.count(1)}
    lengths[0] = min(lengths[0], max(room - lengths[1], (room + 1) // 2))
    lengths[1] = min(lengths[1], room - lengths[0])
    kept, taken = [], {0: 0, 1: 0}
    for position, side in enumerate(sides):
        if side is None or taken[side] < lengths[side]:
            kept.append(position)
        if side is not None:
            taken[side] += 1
    return kept


def keep_tokens(feature: Feature, positions: Sequence[int]) -> Feature:
    """The feature with only the tokens at ``positions``."""
    return {**feature, **{key: [feature[key][i] for i in positions] for key in ("input_ids", "token_type_ids")}}


def with_labels(features: list[Feature], examples: Sequence[Example], labels: Sequence[str]) -> list[Feature]:
    """The features with the id of their example's label under ``label``, where the example has a label."""
    ids = {label: id_ for id_, label in enumerate(labels)}
    for feature in features:
        gold = examples[feature["example"]].gold
        if gold is not None:
            feature["label"] = ids[gold]
    return features


def record_gold(name: str) -> Callable[[Example, Sequence[Feature], int], dict[str, Any]]:
    """Record of the inputs and, as ``name`` of the labels, the gold; null in a file without labels."""

    def record(example: Example, features: Sequence[Feature], max_tokens: int) -> dict[str, Any]:
        (feature,) = features
        inputs = {key: feature[key] for key in ("input_ids", "token_type_ids")}
        return {**inputs, "labels": {name: example.gold}}

    return record


def collate_labels(features: Sequence[Feature], pad_id: int) -> dict[str, NDArray[Any]]:
    """Padded inputs and, where the features have them, ``labels`` (B): ids as int64, numbers as float32."""
    batch = pad_inputs(features, pad_id)
    if "label" in features[0]:
        labels_B = np.array([feature["label"] for feature in features])
        batch["labels"] = labels_B.astype(np.float32 if labels_B.dtype.kind == "f" else np.int64)
    return batch


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


def fault_of_label(labels: Sequence[str], example: Example, prediction: Prediction) -> str | None:
    """One of ``labels``; ``scores``, where given, are a number for each of them."""
    value, scores = prediction
    if value not in labels:
        return f"no label {value!r}; labels here are {', '.join(labels)}"
    if scores is None or (
        isinstance(scores, list) and len(scores) == len(labels) and all(map(is_finite_number, scores))
    ):
        return None
    return f"'scores' should be {len(labels)} numbers, one for each of {', '.join(labels)}; found {scores!r:.60}"


def is_finite_number(value: Any) -> bool:
    """Whether a value of JSON is one, true and false left out."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def label_writer(key: str, labels: Sequence[str]) -> Callable[[Path, Mapping[str, Any], Path], None]:
    """Writer of the official file again with the predicted labels under ``key``; other fields stay as they are."""

    def put(record: dict[str, Any], value: Any, where: str) -> None:
        if value not in labels:
            raise BadInput(f"{where}: the prediction is {value!r}; labels here are {', '.join(labels)}")
        record[key] = value

    return lambda official, values, target: write_records(official, values, target, put)


def write_records(
    official: Path, values: Mapping[str, Any], target: Path, put: Callable[[dict[str, Any], Any, str], None]
) -> None:
    """Write the records of a JSON file to ``target``, indented as officially, after ``put`` has changed each.

    Args:
        values: prediction by guid.
        put: ``(record, prediction, where)``; changes the record.

    Raises:
        BadInput: a record without a prediction.
    """
    records = read_records(official)
    for where, record in records:
        if record["guid"] not in values:
            raise BadInput(f"{where}: no prediction for it; predict every record of the file")
        put(record, values[record["guid"]], where)
    text = json.dumps([record for _, record in records], ensure_ascii=False, indent=4)
    write_whole(target, text)
