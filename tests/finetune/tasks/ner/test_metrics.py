"""Tables of KLUE-NER against entities read tag by tag, and rows that hold what the published metrics count."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from finetune.examples import Row
from finetune.tasks.ner.metrics import NER_TAGS, score, tables

TYPES = ("PS", "LC", "OG", "DT", "TI", "QT")


def entities_of(tags: list[str]) -> set[tuple[str, int, int]]:
    """Type, first character and length: from a B- over the I- of its type."""
    found = set()
    for first, tag in enumerate(tags):
        if tag.startswith("B-"):
            length = 1
            while first + length < len(tags) and tags[first + length] == "I-" + tag[2:]:
                length += 1
            found.add((tag[2:], first, length))
    return found


def sentence(rng: random.Random) -> list[str]:
    tags: list[str] = []
    while len(tags) < 30:
        name = rng.choice(TYPES)
        tags += rng.choice([["O"], [f"B-{name}", *[f"I-{name}"] * rng.randint(0, 11)], [f"I-{name}"]])
    return tags


def noisy(tags: list[str], rng: random.Random) -> list[str]:
    return [tag if rng.random() < 0.9 else rng.choice(NER_TAGS) for tag in tags]


def test_tables_count_the_entities_of_both_sides() -> None:
    rng = random.Random(5)
    rows = [Row("", gold, noisy(gold, rng)) for gold in (sentence(rng) for _ in range(40))]
    counts = [Counter(), Counter(), Counter()]
    for row in rows:
        gold, predicted = entities_of(row.gold), entities_of(row.prediction)
        for count, side in zip(counts, (gold, predicted, gold & predicted), strict=True):
            count.update(name for name, _, _ in side)
    found = tables(rows)
    assert found.keys() == {"entity types"}
    assert [line["type"] for line in found["entity types"]] == list(TYPES)
    for line in found["entity types"]:
        gold, predicted, right = (count[line["type"]] for count in counts)
        assert (line["gold"], line["predicted"], line["right"]) == (gold, predicted, right)
        assert line["precision"] == (pytest.approx(100 * right / predicted) if predicted else None)
        assert line["recall"] == (pytest.approx(100 * right / gold) if gold else None)
        assert line["f1"] == (pytest.approx(200 * right / (gold + predicted)) if gold + predicted else None)
        assert gold and predicted


def cut_row(characters: int) -> Row:
    return Row("g", ["B-PS", "I-PS", "O"], ["B-PS", "I-PS", "O"], {"characters": characters, "ends": ["O", "O"]})


@pytest.mark.parametrize(("kept", "left_out"), [((3, 3), None), ((3, 1), (1, 2)), ((2, 0), (2, 4))])
def test_characters_that_the_published_metrics_do_not_count_are_reported(kept, left_out) -> None:
    lines = tables([cut_row(count) for count in kept] + [Row("h", ["O"], ["O"])]).get("characters left out")
    assert lines == (left_out and [{"sentences": left_out[0], "characters": left_out[1]}])


@pytest.mark.parametrize("characters", [-1, 4])
def test_more_or_fewer_characters_than_there_are_cannot_be_counted(characters: int) -> None:
    with pytest.raises(ValueError, match=f"g: 'characters' is {characters}, of 3"):
        score([cut_row(characters)])
