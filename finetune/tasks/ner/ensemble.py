"""KLUE-NER by several models: probabilities of each character, so tokenizers may differ.

A character has the probabilities of the token from which it reads. In a member where it begins the token they count
unchanged; inside a token, I- gets the greater of B- and I-, as in the decoding of one model.
Legend: ``N`` characters of all sentences, ``L`` positions of a feature, ``K`` tags, O last.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from finetune.examples import Example, Feature, Prediction
from finetune.metrics import softmax
from finetune.task import MemberRecord, MemberRecords
from finetune.tasks.ner.alignment import count_letters
from finetune.tasks.ner.metrics import NER_TAGS


def to_records(
    examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any], names: Sequence[str] = NER_TAGS
) -> list[MemberRecord]:
    """``tags``: probabilities of each character, zeros if it reads from no token; ``begins``: whether it begins the
    token."""
    lengths = [count_letters(example) for example in examples]
    tags = [np.zeros((length, len(names)), dtype=np.float32) for length in lengths]
    begins = [np.zeros(length, dtype=bool) for length in lengths]
    for feature, raw_LK in zip(features, raws, strict=True):
        if feature["reads"]:
            letters, positions, first = np.array(feature["reads"]).T
            tags[feature["example"]][letters] = softmax(raw_LK)[positions]
            begins[feature["example"]][letters] = first
    return [{"tags": own.ravel(), "begins": first} for own, first in zip(tags, begins, strict=True)]


def to_records_with_ends(
    examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any]
) -> list[MemberRecord]:
    """The same and ``ends``, the probabilities of [CLS] and the last position, which protocol klue-baseline scores; it
    has one feature per sentence."""
    ends = [softmax(raw_LK[[0, -1]]).astype(np.float32).ravel() for raw_LK in raws]
    return [record | {"ends": both} for record, both in zip(to_records(examples, features, raws), ends, strict=True)]


def merge(members: Sequence[MemberRecords], names: Sequence[str] = NER_TAGS) -> list[Prediction]:
    """The most likely tag of each character by the sum of the members' probabilities; O if no member reads it."""
    bounds = np.cumsum([0, *(len(record["begins"]) for record in members[0])])
    begun_NK, inside_NK = np.zeros((2, bounds[-1], len(names)))
    for member in members:
        tags_NK = np.concatenate([record["tags"] for record in member]).reshape(-1, len(names))
        begins_N1 = np.concatenate([record["begins"] for record in member]).astype(bool)[:, None]
        begun_NK += np.where(begins_N1, tags_NK, 0)
        inside_NK += np.where(begins_N1, 0, tags_NK)
    begun_NK[:, 1:-1:2] += np.maximum(inside_NK[:, :-1:2], inside_NK[:, 1:-1:2])
    begun_NK[:, -1] += inside_NK[:, -1]
    is_read_N = begun_NK.any(axis=1)
    best_N = np.where(is_read_N, begun_NK.argmax(axis=1), len(names) - 1)
    tags = [[names[id_] for id_ in best_N[slice(*pair)].tolist()] for pair in pairwise(bounds)]
    if "ends" not in members[0][0]:
        return [Prediction(own) for own in tags]
    ends_S2K = np.sum([[record["ends"] for record in member] for member in members], axis=0, dtype=float)
    ends_S2 = ends_S2K.reshape(-1, 2, len(names)).argmax(axis=-1).tolist()
    counts = np.add.reduceat(is_read_N.astype(int), bounds[:-1]).tolist()  # a sentence has a letter
    return [
        Prediction(own, {"ends": [names[id_] for id_ in both], "characters": count})
        for own, both, count in zip(tags, ends_S2, counts, strict=True)
    ]
