"""What both protocols of KLUE-DP make of a sentence: a feature, a batch, a record, and predictions from its raw output.

A protocol chooses where words are (sub-word positions), which heads may be targets, and how heads follow from scores.
Legend: ``n`` words that are kept, all but those behind the longest input.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finetune.task import IGNORED, Example, Feature, Prediction
from finetune.tasks.dp.metrics import DP_LABELS
from finetune.tasks.dp.words import POS_IDS, ROOT_POS, UNKNOWN_POS
from finetune.tasks.padding import pad_inputs, pad_rows

_TYPE_IDS = {name: number for number, name in enumerate(DP_LABELS)}


def cut_ids(ids: list[int], max_tokens: int) -> list[int]:
    """The first sub-words and the last, which is [SEP]."""
    return ids if len(ids) <= max_tokens else [*ids[: max_tokens - 1], ids[-1]]


def make_feature(
    number: int, example: Example, ids: list[int], first: Sequence[int], last: Sequence[int], *, right_only: bool
) -> Feature:
    """One sentence; position 0 is the root, [CLS]. A gold head behind the cut, or one to the left of its word where
    ``right_only``, is no target.

    Args:
        first, last: sub-word positions of each of the n words.
    """
    n = len(first)
    gold = example.gold or {"heads": [IGNORED] * n, "types": DP_LABELS[:1] * n}
    heads = [
        head if head == 0 or (word if right_only else 0) < head <= n else IGNORED
        for word, head in enumerate(gold["heads"][:n], start=1)
    ]
    return {
        "input_ids": ids,
        "example": number,
        "first": [0, *first],
        "last": [0, *last],
        "pos": [ROOT_POS, *(POS_IDS.get(tag, UNKNOWN_POS) for tag in example.inputs["pos"][:n])],
        "heads": heads,
        "types": [
            IGNORED if head == IGNORED else _TYPE_IDS[name] for head, name in zip(heads, gold["types"][:n], strict=True)
        ],
    }


def keep_trainable(features: list[Feature], is_training: bool) -> list[Feature]:
    """Without sentences that have no target, where the features are for training."""
    return [f for f in features if not is_training or any(head != IGNORED for head in f["heads"])]


def collate_klue_dp(features: Sequence[Feature], pad_id: int) -> dict[str, NDArray[Any]]:
    """Batch as ``BiaffineParser.forward`` describes it."""
    fillers = {"first": 0, "last": 0, "pos": ROOT_POS, "heads": IGNORED, "types": IGNORED}
    return {
        **pad_inputs(features, pad_id),
        **{key: pad_rows([feature[key] for feature in features], filler) for key, filler in fillers.items()},
        "lengths": np.array([len(feature["heads"]) for feature in features]),
    }


def make_record(example: Example, features: Sequence[Feature], max_tokens: int) -> dict[str, Any]:
    """What the model sees of a sentence and learns from it; null where a word has no target."""
    (feature,) = features
    return {
        "input_ids": feature["input_ids"],
        "labels": {
            "word_starts": feature["first"][1:],
            "word_ends": feature["last"][1:],
            "heads": [None if head == IGNORED else head for head in feature["heads"]],
            "types": [None if number == IGNORED else DP_LABELS[number] for number in feature["types"]],
            "pos": example.inputs["pos"][: len(feature["heads"])],
        },
    }


def chain_words(example: Example, inner: str, last: str) -> Prediction:
    """Every word hangs on its right neighbour; the last is the root."""
    words = len(example.inputs["words"])
    return Prediction({"heads": [*range(2, words + 1), 0], "types": [*[inner] * (words - 1), last]})


def name_arcs(
    examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any], trees: Sequence[Sequence[int]]
) -> list[Prediction]:
    """Predictions of the chosen heads, each with the best type of its arc; words behind the cut are chained."""
    predictions = [chain_words(example, "NP", "VP") for example in examples]
    for feature, raw, heads in zip(features, raws, trees, strict=True):
        value, n = predictions[feature["example"]].value, len(heads)
        value["heads"][:n] = heads
        value["types"][:n] = [DP_LABELS[number] for number in raw["types"][np.arange(n), heads].tolist()]
    return predictions
