"""The types of personal data: the 16 names of paper Table 29, names of people, and what defines a type.

A type has one or more formats (a pattern, a check, a strength), label words that announce it in Korean text, and a
generator of replacements.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random

PII_TYPES = (
    "TEL", "RRN", "FRN", "EMAIL", "IP", "MAC", "MENTION", "ADDRESS",
    "ACCOUNT", "PASSPORT", "DRIVER", "BRN", "HEALTH", "CARD", "PLATE", "URL",
)  # fmt: skip

EXTRA_TYPES = ("PERSON",)
"""Types outside Table 29, found on request by the words around them."""

ALL_TYPES = PII_TYPES + EXTRA_TYPES

OTHER = "OTHER"
"""Announced by labels of numbers that are no personal data, such as patent numbers."""

COMPANY = "ORG_NUMBER"  # company numbers look like registration numbers of residents
NOBODY = (OTHER, COMPANY)

Check = Callable[[re.Match[str], str | None], bool]
"""Whether a match is of its type; the second argument is the type that the nearest label announces, if any."""

Fake = Callable[[Random, str], str]
"""Draw a replacement for a value; it keeps separators and length class of the value."""

CLEAR, LIKELY, WEAK, BY_LABEL = 3, 2, 1, 0
"""Strengths of formats. A matching label adds two, so a weak format with a label wins against a likely one without.
``BY_LABEL`` formats count only with a matching label; a label of other numbers rules out weak and likely formats, and
nothing rules out clear ones."""

CERTAIN = 6
"""Formats that win against all numbers, such as e-mail addresses and URLs."""


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_LABEL_LINES = (Path(__file__).parent / "formats" / "labels.txt").read_text("utf-8").splitlines()[1:]
LABEL_WORDS = {name: tuple(row.split(", ")) for name, row in (line.split(": ") for line in _LABEL_LINES)}
"""The words of ``labels.txt`` by type, in lower case, the clearest one first."""


def always(match: re.Match[str], label: str | None) -> bool:
    """The check of formats whose pattern is sufficient."""
    return True


def one_of(names: Iterable[str]) -> str:
    """A regular expression for any of ``names``, longer ones first, as a trie of common prefixes."""
    following: dict[str, list[str]] = {}
    for name in names:
        following.setdefault(name[:1], []).append(name[1:])
    has_end = following.pop("", None) is not None
    ways = [re.escape(first) + (one_of(rests) if rests != [""] else "") for first, rests in sorted(following.items())]
    return f"(?:{'|'.join(ways)})" + "?" * has_end if ways else ""


class Scope:
    """Where formats are tried: from ``before`` characters before each clue to ``after`` characters after it.

    A clue is one of the rare characters ``first``, followed by a match of ``rest``. One search finds the clues of all
    scopes. With ``run``, formats start at the start of the run of characters that ends at the clue; ``run`` matches it
    backwards. With ``cluster``, which matches from the clue on, the clues of one cluster are read once.
    """

    def __init__(self, first: str, rest: str, before: int, after: int, run: str = "", cluster: str = "") -> None:
        self.first, self.rest, self.before, self.after = first, rest, before, after
        whole = "(?<![0-9][0-9])" if first == "0-9" else ""  # not in the middle of a number
        self.clue = re.compile(f"[{first}]{whole}(?:{rest})")
        self.run, self.cluster = (re.compile(pattern) if pattern else None for pattern in (run, cluster))


_IN_NUMBERS = r"[0-9\-.·)(/ +_~:*]"
NUMBERS = Scope("0-9", f"{_IN_NUMBERS}{{5,24}}?[0-9]", before=9, after=8, cluster=f"(?:{_IN_NUMBERS}*[0-9])?")
"""Clusters of digits and separators, with a region or bracket before them and words such as 년 (year) after them."""


@dataclass(frozen=True, slots=True)
class Format:
    """One way to write a type, in folded text (``fold``). The group ``value`` is the span, else the whole match.

    Patterns take linear time and have no ``\\b``, because particles are attached to values and Hangul is ``\\w``.
    """

    pattern: re.Pattern[str]
    strength: int
    check: Check = always
    scope: Scope = NUMBERS
    digits: int = 8  # minimum number of digits (scope ``NUMBERS``)
    leads: str = "0123456789"  # possible first characters (scope ``NUMBERS``); any if empty
    needs: re.Pattern[str] | None = None  # must also match in the searched text; for expensive patterns
    has_checksum: bool = False  # ``check`` verifies a check digit


@dataclass(frozen=True, slots=True)
class PiiType:
    """A type of personal data; ``example`` is a plain value that nobody has."""

    name: str
    formats: tuple[Format, ...]
    fake: Fake
    example: str

    @property
    def context(self) -> tuple[str, ...]:
        """Its label words, the clearest one first."""
        return LABEL_WORDS[self.name]
