"""Templates of Korean sentences: ``{person:은} [지난|올해] {date:에} {city:에서} 태어났다.``

``{slot}`` puts a value, ``{slot:은}`` the value and the particle that agrees with it, ``{:은}`` a particle for whatever
precedes; ``[a|b|]`` chooses one alternative, which may hold slots and choices again. Runs of blanks become one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from random import Random
from typing import NamedTuple

from launch.sample.josa import particle


class Slot(NamedTuple):
    name: str
    josa: str


class Choice(NamedTuple):
    alternatives: tuple[tuple[Part, ...], ...]


Part = str | Slot | Choice
TOKEN = re.compile(r"\{([a-z_0-9]*)(?::([가-힣]+))?\}|([\[\]|])|([^\[\]|{}]+)")
BLANKS = re.compile(r" {2,}")
BLANK_BEFORE_MARK = re.compile(r"(?<! ) ++(?=[.,!?)])")


def render(template: str, slots: Mapping[str, object], rng: Random) -> str:
    """One sentence of a template.

    Raises:
        KeyError: the template asks for a slot that ``slots`` does not have.
    """
    pieces: list[str] = []
    _render(parse(template), slots, rng, pieces)
    return BLANK_BEFORE_MARK.sub("", BLANKS.sub(" ", "".join(pieces))).strip()


def render_one(templates: Sequence[str], slots: Mapping[str, object], rng: Random) -> str:
    """One sentence of one of the templates."""
    return render(rng.choice(templates), slots, rng)


def _render(parts: Sequence[Part], slots: Mapping[str, object], rng: Random, pieces: list[str]) -> None:
    for part in parts:
        if isinstance(part, str):
            pieces.append(part)
        elif isinstance(part, Choice):
            _render(rng.choice(part.alternatives), slots, rng, pieces)
        else:
            if part.name:
                pieces.append(str(slots[part.name]))
            if part.josa:
                pieces.append(particle("".join(pieces[-3:]), part.josa))


@cache
def parse(template: str) -> tuple[Part, ...]:
    """The parts of a template.

    Raises:
        ValueError: a bracket or brace does not close, or a character has no meaning here.
    """
    tokens = list(TOKEN.finditer(template))
    if "".join(token[0] for token in tokens) != template:
        raise ValueError(f"{template!r}: brace that does not belong to a slot")
    alternatives, end = _parse(tokens, 0, template)
    if end != len(tokens) or len(alternatives) != 1:
        raise ValueError(f"{template!r}: bracket or bar outside of a choice")
    return alternatives[0]


def _parse(tokens: list[re.Match[str]], at: int, template: str) -> tuple[list[tuple[Part, ...]], int]:
    """Alternatives from token ``at`` to the bracket that closes them (or the end), and the token after them."""
    alternatives: list[tuple[Part, ...]] = []
    parts: list[Part] = []
    while at < len(tokens):
        token = tokens[at]
        mark = token[3]
        at += 1
        if mark == "[":
            inner, at = _parse(tokens, at, template)
            if at > len(tokens) or tokens[at - 1][3] != "]":
                raise ValueError(f"{template!r}: a choice does not close")
            parts.append(Choice(tuple(inner)))
        elif mark == "|":
            alternatives.append(tuple(parts))
            parts = []
        elif mark == "]":
            break
        else:
            parts.append(token[4] or Slot(token[1] or "", token[2] or ""))
    return [*alternatives, tuple(parts)], at
