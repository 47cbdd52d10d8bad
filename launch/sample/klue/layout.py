"""What the eight benchmark files share: two sides, sentences with slots, no repetition, JSON as in KLUE.

Train and dev come from the same world, but a fifth of its people, places and organisations appears in dev only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeVar

from launch.sample.josa import particle
from launch.sample.seeding import random_for

T = TypeVar("T")
SIDES = ("train", "dev")
UNSEEN_SHARE = 0.2
SLOT = re.compile(r"\{(\w*)(?::([가-힣]+))?\}")  # {who}, {who:은} with its particle, {:은} a particle alone
CHOICE = re.compile(r"\[([^\[\]]*)\]")  # [one|other|]


class Filled(NamedTuple):
    """A sentence and where its slots came to stand: (slot, start, end), end exclusive, in order."""

    text: str
    spans: tuple[tuple[str, int, int], ...]


def fill(template: str, values: Mapping[str, str]) -> Filled:
    """``fill("{who:은} {where}에 산다.", …)``: slots replaced, particles agreeing, spans kept."""
    text, spans, done = "", [], 0
    for slot in SLOT.finditer(template):
        text += template[done : slot.start()]
        if slot[1]:
            value = values[slot[1]]
            spans.append((slot[1], len(text), len(text) + len(value)))
            text += value
        text += particle(text, slot[2]) if slot[2] else ""
        done = slot.end()
    return Filled(text + template[done:], tuple(spans))


def expand(template: str, rng: Random) -> str:
    """The template with its choices made, the innermost first."""
    while found := CHOICE.search(template):
        chosen = rng.choice(found[1].split("|"))
        template = template[: found.start()] + chosen + template[found.end() :]
    return re.sub(" +", " ", template).strip()


def cast(items: Sequence[T], seed: int, kind: str) -> dict[str, list[T]]:
    """Items per side: train lacks a fifth (none of one or two), dev has all, those unseen in training twice over."""
    order = list(items)
    random_for(seed, "cast", kind).shuffle(order)
    unseen = order[: round(len(order) * UNSEEN_SHARE)]
    return {"train": order[len(unseen) :], "dev": unseen + order}


def draw_distinct(
    draw: Callable[[int], T],
    key: Callable[[T], Hashable],
    count: int,
    taken: set[Hashable],
    shuffler: Random,
) -> list[T]:
    """``count`` examples from ``draw(0), draw(1), …`` whose keys are not in ``taken``; the keys are added to it.

    Labels often take turns with the number of the draw, so the examples come back shuffled.
    """
    found: list[T] = []
    for attempt in range(100 * count):
        example = draw(attempt)
        if key(example) in taken:
            continue
        taken.add(key(example))
        found.append(example)
        if len(found) == count:
            shuffler.shuffle(found)
            return found
    raise AssertionError(f"only {len(found)} of {count} different examples; the templates are too few")


def write_text(path: Path, lines: Iterable[str]) -> None:
    """Write pieces of text as UTF-8 with Unix line ends, creating the folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(lines)


def write_json(path: Path, value: Any) -> None:
    """Write JSON as KLUE does: Hangul as it is, indented by four."""
    write_text(path, [json.dumps(value, ensure_ascii=False, indent=4)])
