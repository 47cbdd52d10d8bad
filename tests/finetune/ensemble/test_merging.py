"""What several models say becomes one prediction: a case by hand for each kind, decoded as the task decodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from finetune.examples import Prediction
from finetune.registry import TASKS
from finetune.tasks.dp.metrics import DP_LABELS
from finetune.tasks.ner.metrics import NER_TAGS
from finetune.tasks.nli.task import NLI_LABELS
from finetune.tasks.wos.reader import GATES, SLOTS


def merge(task: str, *members: Sequence[dict[str, Any]], protocol: Any = "malmoi") -> list[Prediction]:
    merging = TASKS[task].with_protocol(protocol).ensembling
    assert merging is not None
    return merging.merge(members)


def test_probabilities_of_labels_and_numbers_are_averaged() -> None:
    first, second = [{"scores": [0.5, 0.1, 0.4]}], [{"scores": [0.1, 0.2, 0.7]}]
    (found,) = merge("klue-nli", first, second)
    assert (found.value, found.scores) == (NLI_LABELS[2], pytest.approx([0.3, 0.15, 0.55]))
    similar = [[{"prediction": value, "scores": None}] for value in (1.5, 4.0, 2.0)]
    assert merge("klue-sts", *similar) == [Prediction(2.5)]


def letters(*rows: tuple[bool, dict[str, float]]) -> dict[str, Any]:
    """A sentence as kept: for each letter whether it begins its token, and probabilities by tag."""
    tags = [[p.get(name, 0.0) for name in NER_TAGS] for _, p in rows]
    return {"tags": np.array(tags, dtype=np.float32).ravel(), "begins": np.array([begins for begins, _ in rows])}


def test_entities_are_averaged_by_letter_where_tokens_differ() -> None:
    whole = {"B-LC": 0.7, "I-LC": 0.1, "O": 0.2}  # 서울 as one token, 로 as another
    one = [letters((True, whole), (False, whole), (True, {"O": 0.6, "I-LC": 0.4}))]
    # each letter a token
    two = [letters((True, {"O": 0.6, "B-LC": 0.4}), (True, {"O": 0.8, "I-LC": 0.2}), (True, {"I-LC": 0.5, "O": 0.5}))]
    assert [found.value for found in merge("klue-ner", one, two)] == [
        ["B-LC", "O", "O"]
    ]  # 2nd: .7 + .2 against .2 + .8
    assert [found.value for found in merge("klue-ner", one, one, two)] == [["B-LC", "I-LC", "O"]]
    unread = letters((True, {}), (True, {"O": 1.0}), (True, {}))
    assert merge("klue-ner", [unread])[0].value == ["O"] * 3
    assert merge("klue-ner", [unread], one)[0].value == ["B-LC", "O", "O"]  # it has no say on what it cannot read


def test_published_ends_are_averaged_and_letters_counted_that_anybody_reads() -> None:
    ends = np.zeros((2, 2, len(NER_TAGS)), dtype=np.float32)
    ends[0, :, 12], ends[0, :, 2], ends[1, :, 12], ends[1, 1, 0] = 0.6, 0.4, 0.3, 0.7
    one, two = (
        letters((True, {"O": 1.0}), (True, p)) | {"ends": e.ravel()}
        for p, e in zip(({}, {"B-PS": 1.0}), ends, strict=True)
    )
    (found,) = merge("klue-ner", [one], [two], protocol="klue-baseline")
    assert found == Prediction(["O", "B-PS"], {"ends": ["O", "O"], "characters": 2})
    (found,) = merge("klue-ner", [one], protocol="klue-baseline")
    assert found == Prediction(["O", "O"], {"ends": ["O", "O"], "characters": 1})


def tree(
    n: int, arcs: dict[tuple[int, int], float], relations: dict[tuple[int, int], dict[str, float]]
) -> dict[str, Any]:
    """A sentence of three words as kept; words count from 1."""
    p = np.full((n, n + 1), 1e-6)
    for (word, head), value in arcs.items():
        p[word - 1, head] = value
    pairs = [(word - 1) * (n + 1) + head for word, head in relations]
    scores = [[np.log(of.get(name, 1e-6)) for name in DP_LABELS] for of in relations.values()]
    types = np.full(n * (n + 1), DP_LABELS.index("DP"), dtype=np.uint8)
    types[pairs] = np.argmax(scores, axis=1)
    return {
        "words": np.array([n, 3]), "arcs": np.log(p).astype(np.float32).ravel(), "types": types,
        "pairs": np.array(pairs), "relations": np.array(scores, dtype=np.float32).ravel(),
    }  # fmt: skip


def test_the_tree_and_its_relations_come_of_the_mean_arcs() -> None:
    end = {(2, 3): {"NP_OBJ": 1.0}, (3, 0): {"VP": 1.0}}
    one = tree(
        3, {(1, 2): 0.6, (1, 3): 0.4, (2, 3): 1.0, (3, 0): 1.0}, {(1, 2): {"NP": 1.0}, (1, 3): {"NP_SBJ": 1.0}, **end}
    )
    two = tree(3, {(1, 2): 0.1, (1, 3): 0.9, (2, 3): 1.0, (3, 0): 1.0}, {(1, 3): {"AP": 0.6, "NP_SBJ": 0.4}, **end})
    assert merge("klue-dp", [one])[0].value == {"heads": [2, 3, 0], "types": ["NP", "NP_OBJ", "VP"]}
    assert merge("klue-dp", [two])[0].value == {"heads": [3, 3, 0], "types": ["AP", "NP_OBJ", "VP"]}
    for members in ([one], [two]), ([two], [one]):  # NP_SBJ .4 + .9 * .4 against AP .9 * .6
        assert merge("klue-dp", *members)[0].value == {"heads": [3, 3, 0], "types": ["NP_SBJ", "NP_OBJ", "VP"]}
    cut = tree(2, {(1, 2): 1.0, (2, 0): 1.0}, {(1, 2): {"R": 1.0}, (2, 0): {"R": 1.0}})
    assert merge("klue-dp", [one], [cut]) == merge("klue-dp", [one])  # who reads less of a sentence has no say
    assert merge("klue-dp", [cut])[0].value["heads"] == [2, 3, 0]


def answers(null: float, *spans: tuple[float, str, int]) -> dict[str, Any]:
    """A question as kept: scores, texts and first characters of spans."""
    return {
        "null": np.array([null], dtype=np.float32),
        "scores": np.array([score for score, _, _ in spans], dtype=np.float32),
        "places": np.array([[begin, begin + len(text)] for _, text, begin in spans], dtype=np.int32).ravel(),
        "texts": [text for _, text, _ in spans],
    }


def test_spans_are_voted_for_by_their_characters_and_no_answer_by_all() -> None:
    one = [answers(0.0, (3.0, "서울에", 4), (2.5, "서울", 4))]
    two = [answers(0.0, (3.0, "부산", 9), (2.9, "서울", 4))]
    assert [merge("klue-mrc", member)[0].value for member in (one, two)] == ["서울에", "부산"]
    assert merge("klue-mrc", one, two)[0].value == "서울"
    sure = [answers(9.0, (1.0, "서울", 4))]
    (found,) = merge("klue-mrc", one, sure)  # 1 / (1 + e^3) and 1 / (1 + e^-8)
    p = (1 / (1 + np.exp(3)) + 1 / (1 + np.exp(-8))) / 2
    assert found == Prediction("", {"null": pytest.approx(np.log(p / (1 - p)))})
    assert merge("klue-mrc", one, one, sure)[0].value == "서울에"
    assert merge("klue-mrc", [answers(0.0)])[0] == Prediction("", {"null": None})


def state(gates: dict[str, dict[str, float]], values: dict[str, str]) -> list[dict[str, Any]]:
    """A turn as kept; other slots are absent."""
    p = [[gates.get(slot, {"none": 1.0}).get(gate, 1e-9) for gate in GATES] for slot in SLOTS]
    numbers = np.array([SLOTS.index(slot) for slot in values], dtype=np.int32)
    return [{"gates": np.log(p).astype(np.float32).ravel(), "slots": numbers, "values": list(values.values())}]


def test_gates_are_averaged_and_values_weigh_as_much_as_their_gate() -> None:
    name, parking = "식당-이름", "식당-주차 가능"
    one = state({name: {"ptr": 0.9, "none": 0.1}, parking: {"none": 0.6, "yes": 0.4}}, {name: "온정"})
    two = state({name: {"ptr": 0.5, "none": 0.5}, parking: {"yes": 0.9, "none": 0.1}}, {name: "온점"})
    three = state({name: {"ptr": 0.45, "none": 0.35, "yes": 0.2}}, {name: "온점"})
    assert merge("wos", one, two)[0].value == [f"{name}-온정", f"{parking}-yes"]
    assert merge("wos", one, two, three)[0].value == [f"{name}-온점"]
    hesitant = [state({name: {"ptr": 0.4, other: 0.5, "none": 0.1}}, {}) for other in ("yes", "no")]
    assert merge("wos", *hesitant)[0].value == [f"{name}-yes"]  # nobody has a value; of equals the first
    empty = state({name: {"ptr": 1.0}}, {name: ""})
    assert merge("wos", empty)[0].value == []
    assert merge("wos", empty, protocol="klue-baseline")[0].value == [f"{name}-"]  # as published
