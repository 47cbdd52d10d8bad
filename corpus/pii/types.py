"""The vocabulary of personal data: 16 type names, and what a row of the type table holds.

The names follow paper Table 29 in order. A type has one or more formats (a pattern, what else must hold, how telling
it is), the words that announce it in Korean text, and a generator of replacements.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random

PII_TYPES = (
    "TEL", "RRN", "FRN", "EMAIL", "IP", "MAC", "MENTION", "ADDRESS",
    "ACCOUNT", "PASSPORT", "DRIVER", "BRN", "HEALTH", "CARD", "PLATE", "URL",
)  # fmt: skip

EXTRA_TYPES = ("PERSON", "ORG_NUMBER", "HANDLE", "CUSTOMS", "COURIER", "MEMBERSHIP")
"""Outside Table 29: found where they are asked for, by the words around them."""

ALL_TYPES = PII_TYPES + EXTRA_TYPES

OTHER = "OTHER"
"""Announced by words for numbers that are nobody's personal data, such as tracking or patent numbers."""

Check = Callable[[re.Match[str], str | None], bool]
"""Whether a match really is of its type; the second argument is the type announced by the nearest label, if any."""

Fake = Callable[[Random, str], str]
"""Draw a replacement for a value; the separators and the length class of the value are kept."""

CLEAR, LIKELY, WEAK, BY_LABEL = 3, 2, 1, 0
"""How telling a format is. A matching label adds two, so a labelled weak format outweighs an unlabelled likely one;
``BY_LABEL`` formats count only where a label announces their type."""

LABEL_BONUS = 2
SCORES = (0.4, 0.5, 0.65, 0.8, 0.9, 0.9, 0.95)
"""How sure a span of each strength is, 0..1, without label or check digit."""
CERTAIN = 6
"""Formats that no label, not even of something else, puts in doubt: e-mail addresses, URLs and the like."""


def words(text: str) -> tuple[str, ...]:
    """The words of a blank-separated list."""
    return tuple(text.split())


def always(match: re.Match[str], label: str | None) -> bool:
    """The check of formats whose pattern says it all."""
    return True


def one_of(names: Iterable[str]) -> str:
    """A regular expression that matches any of ``names``, longer ones first; shared beginnings are looked at once."""
    following: dict[str, list[str]] = {}
    for name in names:
        following.setdefault(name[:1], []).append(name[1:])
    has_end = following.pop("", None) is not None
    ways = [re.escape(first) + (one_of(rests) if rests != [""] else "") for first, rests in sorted(following.items())]
    return f"(?:{'|'.join(ways)})" + "?" * has_end if ways else ""


class Scope:
    """Where formats are tried: from ``before`` characters ahead of each clue to ``after`` characters behind it.

    A clue is one of the characters ``first``, rare in text, and what ``rest`` matches from behind it; the clues of all
    scopes are found by one joint search. Where ``run`` is given, formats begin where the run does that ends at the
    clue: what ``run`` matches, read backwards from there.
    """

    def __init__(self, first: str, rest: str, before: int, after: int, run: str = "") -> None:
        self.first, self.rest, self.before, self.after = first, rest, before, after
        whole = "(?<![0-9][0-9])" if first == "0-9" else ""  # not in the middle of a number
        self.clue = re.compile(f"[{first}]{whole}(?:{rest})")
        self.run = re.compile(run) if run else None


_IN_NUMBERS = r"[0-9\-.·)(/ +_~:*]"
NUMBERS = Scope("0-9", f"{_IN_NUMBERS}{{5,24}}?[0-9]", before=9, after=8)
"""Clusters of digits and separators; a region or a bracket may stand before them, a word such as 년 (year) behind."""
NUMBER_CLUSTER = re.compile(f"(?:{_IN_NUMBERS}*[0-9])?")


@dataclass(frozen=True, slots=True)
class Format:
    """One way to write a type.

    ``pattern``: linear time, never ``\\b`` (Hangul is a letter to ``re``, so a glued particle hides the boundary); the
    group ``value`` is the span where the pattern has it, else the whole match. It searches folded text (``fold``):
    plain digits, one kind of hyphen and of blank.
    ``digits``: of ``NUMBERS``, the fewest digits that a value has; ``leads``: the characters it begins with, any if
    empty. ``needs``: what must stand in the searched text too, for patterns that are dear. ``has_checksum``: the check
    holds a check digit against the value.
    """

    pattern: re.Pattern[str]
    strength: int
    check: Check = always
    scope: Scope = NUMBERS
    digits: int = 8
    leads: str = "0123456789"
    needs: re.Pattern[str] | None = None
    has_checksum: bool = False


@dataclass(frozen=True, slots=True)
class PiiType:
    """A row of paper Table 29.

    ``context`` holds lower-case label words, the first one the most telling; ``example`` is a plain value, nobody's.
    """

    name: str
    formats: tuple[Format, ...]
    context: tuple[str, ...]
    fake: Fake
    example: str
