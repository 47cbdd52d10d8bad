"""Data of a task on its way: examples, features, predictions, rows of predictions.jsonl, padded arrays.

Arrays instead of tensors: only the model of a task needs torch. Legend: ``B`` rows, ``L`` positions of the longest row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch.nn import Module
    from transformers import PreTrainedTokenizerBase as Tokenizer
else:  # annotations only, so that reading, converting, decoding and scoring need no torch
    Module = Tokenizer = Any

# A feature is the model input for (part of) one example: "input_ids" (list or array of int), "example" (index of its
# example) and the fields that collate and decode of the task need.
Feature = dict[str, Any]
ErrorView = tuple[dict[str, str], list[str], list[str]]  # texts by field, gold and prediction, as people read them
Table = list[dict[str, Any]]  # rows, name of column to value

IGNORED = -100  # a target that the loss skips: special tokens, padding


@dataclass(frozen=True, slots=True)
class Example:
    """One scored unit of a benchmark file: a title, a pair, a sentence, a question, a user turn."""

    guid: str
    gold: Any  # JSON: a label name, a number, a list of tags …; None in a file without labels
    inputs: Mapping[str, Any]  # the task's own fields


class Prediction(NamedTuple):
    """Prediction for one example: ``value`` as JSON like the gold, ``scores`` as JSON or None."""

    value: Any
    scores: Any = None


class Row(NamedTuple):
    """One line of predictions.jsonl."""

    guid: str
    gold: Any
    prediction: Any
    scores: Any = None


def to_rows(examples: Sequence[Example], predictions: Sequence[Prediction]) -> list[Row]:
    """Examples and their predictions as lines of a predictions file."""
    return [Row(e.guid, e.gold, *prediction) for e, prediction in zip(examples, predictions, strict=True)]


def pad_rows(rows: Sequence[Sequence[int] | NDArray[np.integer]], filler: int) -> NDArray[np.int64]:
    """Rows of ids as one (rows, longest) array; shorter rows end with ``filler``."""
    lengths_B = np.array([len(row) for row in rows])
    padded_BL = np.full((len(rows), int(lengths_B.max())), filler, dtype=np.int64)
    is_real_BL = np.arange(padded_BL.shape[1]) < lengths_B[:, None]
    padded_BL[is_real_BL] = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=int(lengths_B.sum()))
    return padded_BL


def pad_inputs(features: Sequence[Feature], pad_id: int) -> dict[str, NDArray[Any]]:
    """``input_ids``, ``attention_mask`` and, if the features have them, ``token_type_ids``, each (B, L) int64."""
    ids_BL = pad_rows([feature["input_ids"] for feature in features], pad_id)
    lengths_B1 = np.array([[len(feature["input_ids"])] for feature in features])
    batch = {"input_ids": ids_BL, "attention_mask": (np.arange(ids_BL.shape[1]) < lengths_B1).astype(np.int64)}
    if "token_type_ids" in features[0]:
        batch["token_type_ids"] = pad_rows([feature["token_type_ids"] for feature in features], 0)
    return batch
