"""KLUE-NLI from the sample's world: a premise tells a fact, a hypothesis follows from it, denies it, or leaves it open.

The hypothesis alone should not give the label away: sentences that other facts support are neutral, negated sentences
may follow, and what is open after one premise is said in another (KLUE 3.3).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from launch.sample.klue.facts import Fact
from launch.sample.klue.layout import SIDES, draw_distinct, write_json
from launch.sample.klue.sentences import (
    can_deny_falsehood,
    deny_falsehood,
    tell,
    tell_denial,
    tell_open,
    tell_part,
    tell_whole,
    tell_wrongly,
)
from launch.sample.seeding import random_for

LABELS = ("entailment", "contradiction", "neutral")
SOURCES = {"venue": "sample-reviews", "product": "sample-reviews", "land": "sample-encyclopedia"}
TRAIT_ALONE = ("{venue:은} {trait}.", "{venue:은} {antitrait}.")
OTHER_FACT_SHARE = 0.65
SOURCE_FIELD = {"train": "genre", "dev": "source"}  # the official files name it differently


def write_nli(facts: Mapping[str, Sequence[Fact]], seed: int, folder: Path, counts: Mapping[str, int]) -> None:
    """Write klue-nli-v1.1_train.json and _dev.json; labels take turns, so each has a third."""
    taken: set[Hashable] = set()
    for side in SIDES:
        pairs = draw_distinct(
            lambda attempt, side=side: draw_pair(seed, side, attempt, facts[side]),  # type: ignore[misc]
            lambda pair: (pair[1], pair[2]),
            counts[side],
            taken,
            random_for(seed, "order", "klue-nli", side),
        )
        records = [_record(side, number, *pair) for number, pair in enumerate(pairs)]
        write_json(folder / f"klue-nli-v1.1_{side}.json", records)


def draw_pair(seed: int, side: str, attempt: int, facts: Sequence[Fact]) -> tuple[str, str, str, str]:
    """Source, premise, hypothesis and label."""
    rng = random_for(seed, "klue-nli", side, attempt)
    fact, label = rng.choice(facts), LABELS[attempt % len(LABELS)]
    premise, aside = tell_whole(fact, rng), tell_open(fact, rng)
    if label == "entailment":
        hypothesis, needs_aside = _follow(fact, premise, aside, rng)
    elif label == "contradiction":
        hypothesis, needs_aside = _contradict(fact, rng), False
    else:
        hypothesis, needs_aside = _leave_open(fact, aside, facts, rng), False
    if needs_aside or (hypothesis != aside and rng.random() < 0.2):
        premise += " " + aside
    return SOURCES.get(fact.kind, "sample-news"), premise, hypothesis, label


def _follow(fact: Fact, premise: str, aside: str, rng: Random) -> tuple[str, bool]:
    """A hypothesis that follows, and whether it follows from the aside, which the premise must then contain."""
    drawn = rng.random()
    if drawn < 0.25:
        return aside, True
    if drawn < 0.4 and can_deny_falsehood(fact):
        return deny_falsehood(fact, rng), False
    if drawn < 0.5 and (whole := tell_whole(fact, rng)) != premise:
        return whole, False
    return tell_part(fact, rng), False


def _contradict(fact: Fact, rng: Random) -> str:
    return tell_denial(fact, rng) if rng.random() < 0.2 else tell_wrongly(fact, rng, whole=rng.random() < 0.1)


def _leave_open(fact: Fact, aside: str, facts: Sequence[Fact], rng: Random) -> str:
    """What another fact about the same subject would support, or the aside, which the premise then lacks."""
    others = [f for f in facts if f.subject == fact.subject and f.kind != fact.kind]
    traits = [f for f in facts if f.kind == fact.kind == "venue" and f.subject == fact.subject and f != fact]
    told = ""
    if rng.random() < OTHER_FACT_SHARE:
        if traits:
            told = tell(TRAIT_ALONE, rng.choice(traits).slots, rng)
        elif others:
            told = tell_part(rng.choice(others), rng)
    known = all(value not in told for slot, value in fact.slots.items() if value != fact.subject)
    return told if told and known else aside


def _record(side: str, number: int, source: str, premise: str, hypothesis: str, label: str) -> dict[str, Any]:
    return {
        "guid": f"klue-nli-v1_{side}_{number:05}",
        SOURCE_FIELD[side]: source,
        "premise": premise,
        "hypothesis": hypothesis,
        "gold_label": label,
        "author": label,
        **{f"label{judge}": label for judge in range(2, 6)},
    }
