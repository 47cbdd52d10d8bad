"""Facts put into sentences: the step from the tables of wordings to text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from launch.sample.klue.facts import SUBJECT, Fact
from launch.sample.klue.layout import Filled, expand, fill
from launch.sample.klue.statements_people import PEOPLE
from launch.sample.klue.statements_things import THINGS

WORDINGS = PEOPLE | THINGS


def tell(templates: Sequence[str], slots: Mapping[str, str], rng: Random) -> str:
    """One of the templates, filled."""
    return fill(expand(rng.choice(templates), rng), slots).text


def tell_whole(fact: Fact, rng: Random) -> str:
    return tell(WORDINGS[fact.kind].whole, fact.slots, rng)


def tell_part(fact: Fact, rng: Random) -> str:
    return tell(WORDINGS[fact.kind].part, fact.slots, rng)


def tell_open(fact: Fact, rng: Random) -> str:
    return tell(WORDINGS[fact.kind].open, fact.slots, rng)


def tell_denial(fact: Fact, rng: Random) -> str:
    return tell(WORDINGS[fact.kind].denial, fact.slots, rng)


def tell_wrongly(fact: Fact, rng: Random, *, whole: bool) -> str:
    """The fact with one value changed, in words that name both its subject and the changed value."""
    wording = WORDINGS[fact.kind]
    return _tell_falsified(fact, wording.whole if whole else (*wording.part, *wording.whole), rng)


def can_deny_falsehood(fact: Fact) -> bool:
    return bool(_falsifiable(fact, WORDINGS[fact.kind].denial))


def deny_falsehood(fact: Fact, rng: Random) -> str:
    """A denial that is true: not born in that other city."""
    return _tell_falsified(fact, WORDINGS[fact.kind].denial, rng)


def _falsifiable(fact: Fact, templates: Sequence[str]) -> list[tuple[str, str]]:
    """Slots that can be falsified with the templates that name both them and the subject."""
    subject = "{" + SUBJECT[fact.kind]
    swaps = WORDINGS[fact.kind].swap
    return [(slot, t) for t in templates for slot in swaps if "{" + slot in t and subject in t]


def _tell_falsified(fact: Fact, templates: Sequence[str], rng: Random) -> str:
    slot, template = rng.choice(_falsifiable(fact, templates))
    return tell([template], fact.falsified(slot, rng), rng)


def tell_with_spans(fact: Fact, rng: Random) -> Filled:
    """A true sentence, whole or part, with the places of its slots."""
    wording = WORDINGS[fact.kind]
    return fill(expand(rng.choice((*wording.whole, *wording.part)), rng), fact.slots)
