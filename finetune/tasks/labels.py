"""What the tasks with one label or number a text share; their records bind the first arguments of these functions.

A file without labels (a test file) has gold None in every example and no labels in its batches.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from corpus.documents.errors import BadInput
from corpus.documents.whole_files import write_whole
from finetune.data.files import label_of, read_records, text_of
from finetune.task import Example, Feature, Module, Prediction, Tokenizer
from finetune.tasks.padding import pad_inputs

Encode = Callable[..., list[Feature]]  # as ``encode_texts`` or ``encode_pairs_as_published``

Golds = list[tuple[str, dict[str, Any], Any]]  # where (for messages), record and gold of each record of a file


def read_texts(fields: Sequence[str], read_golds: Callable[[Path], Golds], path: Path) -> list[Example]:
    """Examples of a JSON file with the texts ``fields``."""
    return [
        Example(record["guid"], gold, {field: text_of(record, field, where) for field in fields})
        for where, record, gold in read_golds(path)
    ]


def read_labelled(key: str, labels: Sequence[str], path: Path) -> Golds:
    """The records with the label under ``key``."""
    return read_golds(key, lambda record, where: label_of(record, key, labels, where), path)


def read_golds(key: str, gold_of: Callable[[dict[str, Any], str], Any], path: Path) -> Golds:
    """The records with what ``(record, where)`` gives; None in a file without labels.

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


def featurize_texts(
    fields: Sequence[str], labels: Sequence[str] | None, encode: Encode, examples: Sequence[Example],
    tokenizer: Tokenizer, max_tokens: int, is_training: bool,
) -> list[Feature]:  # fmt: skip
    """``[CLS] text [SEP]``, or with a second text after it, too long ones cut by ``encode``."""
    texts = ([example.inputs[field] for example in examples] for field in fields)
    return with_labels(encode(tokenizer, *texts, max_tokens=max_tokens), examples, labels)


def encode_texts(
    tokenizer: Tokenizer, first: Sequence[str], second: Sequence[str] | None = None, max_tokens: int | None = None
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
    tokenizer: Tokenizer, first: Sequence[str], second: Sequence[str], max_tokens: int
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
    size = max_tokens - sides.count(None)
    lengths = {0: sides.count(0), 1: sides.count(1)}
    lengths[0] = min(lengths[0], max(size - lengths[1], (size + 1) // 2))
    lengths[1] = min(lengths[1], size - lengths[0])
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


def with_labels(
    features: list[Feature], examples: Sequence[Example], labels: Sequence[str] | None = None
) -> list[Feature]:
    """The features with their example's gold under ``label``, where it has one: its number in ``labels``, if given."""
    ids = {label: id_ for id_, label in enumerate(labels or ())}
    for feature in features:
        gold = examples[feature["example"]].gold
        if gold is not None:
            feature["label"] = ids[gold] if labels else gold
    return features


def record_gold(name: str, example: Example, features: Sequence[Feature], max_tokens: int) -> dict[str, Any]:
    """The inputs and, as ``name`` of the labels, the gold; null in a file without labels."""
    (feature,) = features
    return {**{key: feature[key] for key in ("input_ids", "token_type_ids")}, "labels": {name: example.gold}}


def collate_labels(features: Sequence[Feature], pad_id: int) -> dict[str, NDArray[Any]]:
    """Padded inputs and, where the features have them, ``labels`` (B): ids as int64, numbers as float32."""
    batch = pad_inputs(features, pad_id)
    if "label" in features[0]:
        labels_B = np.array([feature["label"] for feature in features])
        batch["labels"] = labels_B.astype(np.float32 if labels_B.dtype.kind == "f" else np.int64)
    return batch


def build_labeller(labels: Sequence[str], encoder: str, tokenizer: Tokenizer) -> Module:
    """Encoder and a head over ``labels``."""
    from finetune.heads.labels import load_text_labeller

    return load_text_labeller(encoder, tokenizer, labels)


def decode_labels(
    labels: Sequence[str], examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any]
) -> list[Prediction]:
    """The likeliest label; ``scores`` are the probabilities in the order of ``labels``."""
    return [Prediction(labels[int(raw.argmax())], [float(f"{p:.7g}") for p in raw]) for raw in raws]


def predict_majority(
    labels: Sequence[str], training: Sequence[Example], examples: Sequence[Example]
) -> list[Prediction]:
    """Baseline: the most frequent training label (the first of equals), with training shares as scores."""
    counts = Counter(example.gold for example in training)
    best = max(labels, key=lambda label: counts[label])
    shares = [counts[label] / len(training) for label in labels]
    return [Prediction(best, shares) for _ in examples]


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


def is_finite_number(value: Any) -> TypeGuard[float]:
    """Whether a value of JSON is one, true and false left out."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def write_field(key: str, official: Path, values: Mapping[str, Any], target: Path) -> None:
    """The JSON file again, indented as officially, with the value of each guid under ``key`` of its record."""
    records = [record for _, record in read_records(official)]
    for record in records:
        record[key] = values[record["guid"]]
    write_whole(target, json.dumps(records, ensure_ascii=False, indent=4))
