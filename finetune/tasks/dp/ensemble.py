"""KLUE-DP by several models: the mean of the probabilities of each arc and relation, then the tree of the protocol.

Words are the same for all tokenizers. Relations are stored for heads that a model considers possible; on other arcs its
best relation breaks ties. Legend: ``n`` words that are kept, ``K`` relations, ``C`` pairs of a word and a possible
head.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finetune.examples import Example, Feature, Prediction
from finetune.metrics import softmax
from finetune.task import MemberRecord, MemberRecords
from finetune.tasks.dp.metrics import DP_LABELS

Decode = Callable[[Sequence[Example], Sequence[Feature], Sequence[Any]], list[Prediction]]
POSSIBLE = 0.01  # probability of an arc from which its relations are kept
LEAST = 1e-9  # what the best relation of any other arc counts


def to_records(examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any]) -> list[MemberRecord]:
    """``words``: number of words read and in total; ``arcs``: log-probabilities, and ``types``, of n x (n + 1) arcs;
    ``pairs``: those with ``relations``, K scores each."""
    records: list[MemberRecord] = [{}] * len(examples)
    for feature, raw in zip(features, raws, strict=True):
        n = len(raw["arcs"])
        pairs_nC = np.arange(n)[:, None] * (n + 1) + raw["heads"]
        is_kept_nC = np.take_along_axis(raw["arcs"], np.minimum(raw["heads"], n), axis=1) >= np.log(POSSIBLE)
        is_kept_nC &= raw["heads"] <= n
        records[feature["example"]] = {
            "words": np.array([n, len(examples[feature["example"]].inputs["words"])], dtype=np.int32),
            "arcs": raw["arcs"].ravel(),
            "types": raw["types"].ravel(),
            "pairs": pairs_nC[is_kept_nC].astype(np.int32),
            "relations": raw["relations"][is_kept_nC].ravel(),
        }
    return records


def merge(decode: Decode, members: Sequence[MemberRecords]) -> list[Prediction]:
    """The result of ``decode`` for the mean of the members. If some members cut a long sentence, those that read the
    most of it count."""
    examples, features, raws = [], [], []
    for number, records in enumerate(zip(*members, strict=True)):
        n, words = max(tuple(record["words"].tolist()) for record in records)
        whole = [record for record in records if record["words"][0] == n]
        examples.append(Example("", None, {"words": [""] * words}))
        features.append({"example": number})
        arcs = mean_of_logs([record["arcs"] for record in whole]).reshape(n, n + 1)
        raws.append({"arcs": arcs, "types": _best_types(whole).reshape(n, n + 1)})
    return decode(examples, features, raws)


def mean_of_logs(logs: Sequence[NDArray[np.floating]]) -> NDArray[np.float64]:
    """The logarithm of the mean probability; equal inputs are returned to the last bit."""
    stacked = np.stack(logs).astype(np.float64)
    most = stacked.max(axis=0)
    return np.asarray(most + np.log(np.exp(stacked - most).mean(axis=0)))


def _best_types(records: Sequence[MemberRecord]) -> NDArray[np.int64]:
    """The most likely relation of each arc, given the arc."""
    votes = np.zeros((len(records[0]["arcs"]), len(DP_LABELS)))
    for record in records:
        votes[np.arange(len(votes)), record["types"]] += LEAST
        relations_CK = softmax(record["relations"].reshape(-1, len(DP_LABELS)))
        votes[record["pairs"]] += np.exp(record["arcs"][record["pairs"], None]) * relations_CK
    return np.asarray(votes.argmax(axis=1))
