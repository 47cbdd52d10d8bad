"""WoS by several models: gates are averaged; values are voted for, weighted by the member's probability of a value.

A member has values only for the slots that its own gate opened; a slot that no member opened takes the next best gate.
Legend: ``S`` slots, ``G`` gates.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from finetune.examples import Example, Feature, Prediction
from finetune.metrics import softmax
from finetune.task import MemberRecord, MemberRecords
from finetune.tasks.wos.ontology import GATES, NONE, PTR, SLOTS

ValueOf = Callable[[Example, Feature, Any, str], str]


def to_records(
    value_of: ValueOf, examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any]
) -> list[MemberRecord]:
    """``gates``: S x G scores; ``slots``, numbers of those with a value, and ``values`` from ``value_of``."""
    records: list[MemberRecord] = [{}] * len(examples)
    for feature, raw in zip(features, raws, strict=True):
        example, opened = examples[feature["example"]], [s for s, gate in enumerate(raw["gates"]) if gate == PTR]
        records[feature["example"]] = {
            "gates": raw["gate_scores"].ravel(),
            "slots": np.array(opened, dtype=np.int32),
            "values": [value_of(example, feature, raw, SLOTS[slot]) for slot in opened],
        }
    return records


def merge(left_out: str, members: Sequence[MemberRecords]) -> list[Prediction]:
    """The state of each turn; a value equal to ``left_out`` is dropped."""
    return [Prediction(list(_state(left_out, records))) for records in zip(*members, strict=True)]


def _state(left_out: str, records: Sequence[MemberRecord]) -> list[str]:
    gates = [softmax(record["gates"].reshape(len(SLOTS), len(GATES))) for record in records]
    mean_SG, state = np.mean(gates, axis=0), []
    for slot, name in enumerate(SLOTS):
        if mean_SG[slot].argmax() == NONE:
            continue
        votes: dict[str, float] = defaultdict(float)
        for record, own_SG in zip(records, gates, strict=True):
            for place in np.flatnonzero(record["slots"] == slot):
                votes[record["values"][place]] += float(own_SG[slot, PTR])
        if not votes:
            mean_SG[slot, PTR] = 0
        gate = int(mean_SG[slot].argmax())
        value = max(votes, key=votes.__getitem__) if gate == PTR else GATES[gate]
        if gate != NONE and value != left_out:
            state.append(f"{name}-{value}")
    return state
