"""The independent audit: a second, deliberately simple detector reads everything that the stage has written.

The final check asks the detector that also hid the values, so it cannot see what that detector misses. Here plain
patterns with dates and check digits look for the same numbers, without labels, without folding and without a line of
the first detector. What they find and what is no replacement is counted and reported by its place. False alarms
are counted too; nothing is changed. One search for digits and ``@`` picks the few texts that Python looks at.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

AUDIT_NAME = "audit.json"
MAX_PLACES = 20
ADDRESS = r"[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.){1,5}[A-Za-z]{2,24}"
MAY_MATCH = "@|(?:[0-9][-. ]{0,3}){8}[0-9]"  # every pattern has an @, or at least 9 digits with signs between them


def _digits(value: str) -> list[int]:
    return [int(sign) for sign in value if sign.isdigit()]


def _is_resident(value: str) -> bool:
    """With a date, and the check digit of numbers before October 2020 if there is no hyphen."""
    digits, month, day = _digits(value), int(value[2:4]), int(value[4:6])
    has_date = 1 <= month <= 12 and 1 <= day <= (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]
    total = sum(digit * weight for digit, weight in zip(digits, (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5), strict=False))
    return has_date and ("-" in value or digits[12] in ((11 - total % 11) % 10, (13 - total % 11) % 10))


def _is_card(value: str) -> bool:
    doubled = [digit * 2 - 9 * (digit > 4) for digit in _digits(value)[::2]]
    return (sum(doubled) + sum(_digits(value)[1::2])) % 10 == 0


def _is_business(value: str) -> bool:
    digits = _digits(value)
    weighted = sum(digit * weight for digit, weight in zip(digits, (1, 3, 7, 1, 3, 7, 1, 3, 5), strict=False))
    return (10 - (weighted + digits[8] * 5 // 10) % 10) % 10 == digits[9]


class Pattern(NamedTuple):
    """The plain form of a type; ``is_valid`` checks dates and digits."""

    name: str
    pattern: re.Pattern[str]
    is_valid: Callable[[str], bool] = lambda value: True


def _number(form: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![0-9]){form}(?![0-9])")


PATTERNS = (
    Pattern("RRN", _number(r"[0-9]{6} ?-? ?[1-8][0-9]{6}"), _is_resident),
    Pattern("CARD", _number(r"[3-6][0-9]{3}([ -]?)[0-9]{4}\1[0-9]{4}\1[0-9]{4}"), _is_card),
    Pattern("BRN", _number(r"[0-9]{3}-[0-9]{2}-[0-9]{5}"), _is_business),
    Pattern("TEL", _number(r"01[016-9]([-. ]?)[0-9]{3,4}\1[0-9]{4}")),
    Pattern("TEL", _number(r"0(?:2|[3-6][1-5]|70|50[2-8])-[0-9]{3,4}-[0-9]{4}")),
    Pattern("DRIVER", _number(r"(?:1[1-9]|2[0-68])-[0-9]{2}-[0-9]{6}-[0-9]{2}")),
    Pattern("EMAIL", re.compile(rf"(?<![A-Za-z0-9]){ADDRESS}")),
)


class Match(NamedTuple):
    """A value that the simple patterns find."""

    name: str
    start: int
    end: int


def find_simply(text: str) -> list[Match]:
    return [
        Match(kind.name, *match.span())
        for kind in PATTERNS
        for match in kind.pattern.finditer(text)
        if kind.is_valid(match[0])
    ]


def texts_to_search(texts: pa.Array) -> list[int]:
    """The numbers of the texts of a column in which a pattern may match."""
    return pc.indices_nonzero(pc.match_substring_regex(texts, MAY_MATCH)).to_pylist()


class Audit:
    """What was read, and counts by type and places of what was left."""

    def __init__(self) -> None:
        self.texts = 0
        self.left: Counter[str] = Counter()
        self.places: list[str] = []

    def read(self, texts: pa.Array, place: Callable[[int], str], is_known: Callable[[int, str, Match], bool]) -> None:
        """Search a column of texts; ``is_known`` says whether a match is a replacement."""
        self.texts += len(texts)
        for number in texts_to_search(texts):
            text = texts[number].as_py()
            for match in find_simply(text):
                if not is_known(number, text, match):
                    self.left[match.name] += 1
                    self.places += [f"{place(number)}: {match.name}"] if len(self.places) < MAX_PLACES else []

    def add(self, result: Mapping[str, Any]) -> None:
        self.texts += result.get("texts", 0)
        self.left.update(result.get("left", {}))
        self.places = [*self.places, *result.get("places", ())][:MAX_PLACES]

    def result(self) -> dict[str, Any]:
        """As JSON, without any text."""
        return {"texts": self.texts, "left": dict(sorted(self.left.items())), "places": self.places}
