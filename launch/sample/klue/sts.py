"""KLUE-STS from the sample's world: pairs whose similarity follows from what was changed between the two sentences.

The scale is the benchmark's (KLUE 3.2): 5 the same, 4 the same but for wording, 3 one detail missing, 2 one detail
different, 1 the same topic, 0 nothing in common. Seven invented judges scatter around it; the label is their mean.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from launch.sample.klue.facts import Fact
from launch.sample.klue.layout import SIDES, draw_distinct, expand, fill, write_json
from launch.sample.klue.sentences import WORDINGS, tell_part, tell_whole, tell_wrongly
from launch.sample.seeding import random_for

JUDGES = 7
SIMILAR_FROM = 3.0
POLITE = {"이다.": "입니다.", "했다.": "했습니다.", "있다.": "있습니다.", "였다.": "였습니다.", "었다.": "었습니다."}


def write_sts(facts: Mapping[str, Sequence[Fact]], seed: int, folder: Path, counts: Mapping[str, int]) -> None:
    """Write klue-sts-v1.1_train.json and _dev.json; the six levels take turns."""
    taken: set[Hashable] = set()
    for side in SIDES:
        pairs = draw_distinct(
            lambda attempt, side=side: draw_pair(seed, side, attempt, facts[side]),  # type: ignore[misc]
            lambda pair: frozenset(pair[1:3]),
            counts[side],
            taken,
            random_for(seed, "order", "klue-sts", side),
        )
        records = [_record(side, number, *pair) for number, pair in enumerate(pairs)]
        write_json(folder / f"klue-sts-v1.1_{side}.json", records)


def draw_pair(seed: int, side: str, attempt: int, facts: Sequence[Fact]) -> tuple[str, str, str, list[int]]:
    """Source, two sentences, and what seven judges gave them."""
    rng = random_for(seed, "klue-sts", side, attempt)
    level = attempt % 6
    first, second = _two_sentences(level, facts, rng)
    if rng.random() < 0.5:
        first, second = second, first
    source = "sample-sampled" if level < 2 else "sample-edited"
    return source, first, second, sorted(_judge(level, rng) for _ in range(JUDGES))


def _judge(level: int, rng: Random) -> int:
    return min(5, max(0, level + rng.choices((-1, 0, 1), (1, 5, 1))[0]))


def _two_sentences(level: int, facts: Sequence[Fact], rng: Random) -> tuple[str, str]:
    fact = rng.choice(facts)
    wording = WORDINGS[fact.kind]
    one, other = (fill(expand(t, rng), fact.slots).text for t in rng.sample(wording.whole, 2))
    if level == 5:
        return one, _speak_politely(one)
    if level == 4:
        return one, other
    if level == 3:
        return one, tell_part(fact, rng)
    if level == 2:
        return one, tell_wrongly(fact, rng, whole=True)
    alike = [f for f in facts if f.kind == fact.kind and f.subject != fact.subject]
    unlike = [f for f in facts if f.kind != fact.kind and f.subject != fact.subject]
    return one, tell_whole(rng.choice(alike if level == 1 else unlike), rng)


def _speak_politely(sentence: str) -> str:
    """The same sentence in the polite style, or with an opening word where its ending has no simple polite form."""
    for plain, polite in POLITE.items():
        if sentence.endswith(plain):
            return sentence.removesuffix(plain) + polite
    return f"알려진 대로 {sentence}"


def _record(side: str, number: int, source: str, first: str, second: str, given: list[int]) -> dict[str, Any]:
    mean = sum(given) / len(given)
    return {
        "guid": f"klue-sts-v1_{side}_{number:05}",
        "source": source,
        "sentence1": first,
        "sentence2": second,
        "labels": {"label": round(mean, 1), "real-label": mean, "binary-label": int(mean >= SIMILAR_FROM)},
        "annotations": {
            "agreement": ":".join(str(given.count(score)) for score in range(6)),
            "annotators": [f"{judge:02}" for judge in range(1, JUDGES + 1)],
            "annotations": given,
        },
    }
