"""How facts become clauses and clauses sentences.

A clause is a template that may start with ``{s}`` (the subject with its particle, or nothing) and stops before its
ending: after a past or existential stem (설립됐, 이끌고 있) or after a noun (국내 기업), which then takes the copula.
So two clauses about one subject can be joined: 1987년 설립됐으며, 현재 박서윤 대표이사가 이끌고 있다.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from launch.sample.grammar import render
from launch.sample.josa import attach

SS = 20  # position of the final ㅆ: stems end in it (or are 없, 않), nouns do not
STEM_FINAL = "다."
STEM_LINKS = ("고", "으며", "으며,", "고,")
NOUN_LINKS = ("이며", "이며,", "이고,", "으로,")


@dataclass(frozen=True, slots=True)
class Fact:
    """Something true of a subject: clause templates of its relation, and the values they ask for."""

    relation: str
    clauses: Sequence[str]
    slots: Mapping[str, object]


def lines(block: str) -> tuple[str, ...]:
    """Templates of a text block, one a line."""
    return tuple(line.strip() for line in block.strip().splitlines() if line.strip())


def blocks(text: str) -> dict[str, tuple[str, ...]]:
    """Named groups of templates: a line ``# name`` starts a group."""
    groups: dict[str, list[str]] = {}
    for line in lines(text):
        if line.startswith("# "):
            current = groups.setdefault(line[2:], [])
        else:
            current.append(line)
    return {name: tuple(group) for name, group in groups.items()}


def tell(facts: Sequence[Fact], subjects: Sequence[str], rng: Random, join_share: float = 0.55) -> list[str]:
    """Sentences for the facts in order, neighbours sometimes joined into one.

    Args:
        facts: about one subject.
        subjects: what a sentence may begin with, e.g. ("가온시는", "이 도시는", "시는", ""); the first opens the text.
        rng: the source of all choices.
        join_share: how often two neighbouring facts share a sentence, 0..1.
    """
    sentences: list[str] = []
    at = 0
    while at < len(facts):
        joined = at + 1 < len(facts) and rng.random() < join_share
        subject = subjects[0] if not sentences or rng.random() < 0.2 else rng.choice(subjects)
        first, second = facts[at], facts[at + 1] if joined else None
        sentences.append(_sentence(first, second, subject, rng, opens=not sentences))
        at += 2 if joined else 1
    return sentences


def _sentence(first: Fact, second: Fact | None, subject: str, rng: Random, *, opens: bool) -> str:
    clauses = [clause for clause in first.clauses if clause.startswith("{s}")] if opens else []
    opening = render(rng.choice(clauses or first.clauses), {**first.slots, "s": subject}, rng)
    if second is None:
        return finish(opening)
    closing = render(rng.choice(second.clauses), {**second.slots, "s": ""}, rng)
    return f"{link(opening, rng, as_what=first.relation == 'definition')} {finish(closing)}"


def is_stem(clause: str) -> bool:
    """Whether a clause stops after a stem; otherwise after a noun."""
    return clause[-1] in "없않" or ("가" <= clause[-1] <= "힣" and (ord(clause[-1]) - 0xAC00) % 28 == SS)


def finish(clause: str) -> str:
    """The clause as a sentence: 설립됐다., 기업이다."""
    return clause + STEM_FINAL if is_stem(clause) else attach(clause, "이다") + "."


def link(clause: str, rng: Random, *, as_what: bool = False) -> str:
    """The clause with an ending that leads on: 설립됐으며, 기업이고; 기업으로 only where it says what something is."""
    if is_stem(clause):
        return clause + rng.choice(STEM_LINKS)
    ending = rng.choice(NOUN_LINKS if as_what else NOUN_LINKS[:3])
    if ending == "으로,":
        return attach(clause, "으로") + ","
    return clause + ending  # 회사이며 rather than 회사며
