"""Draw invented values of the same type and form for personal data (paper section 2.3, Table 29).

A replacement depends on secret, document, type and value: equal values of a document get equal replacements, with any
separators and any number of workers. With a key it depends on key, type and value, so it is equal in the whole corpus,
but anyone with the key can verify guesses. Stricter than the paper: the detector finds every replacement again, no
replacement is or contains another value of its document, and unused blocks of numbers are preferred.
"""

from __future__ import annotations

import hmac
import logging
import re
from collections.abc import Iterable, Iterator
from random import Random
from typing import Literal

from corpus.pii.detect import Span, find_pii
from corpus.pii.formats.shapes import digits_of, narrow, widen_like
from corpus.pii.formats.table import BY_NAME

log = logging.getLogger(__name__)

Keep = Literal["form", "none"]
MAX_DRAWS = 50
MAX_PART_CHARS = 64
"""Longer values are only compared as a whole, which keeps the time linear; a draw never contains one by chance."""

_PLAIN = re.compile(r"[0-9 +()./\-]+")
_COUNTRY = re.compile("^(?:00)?82(?=[0-9]{8})|^0")
_UNREADABLE = (AssertionError, ValueError, LookupError, AttributeError, StopIteration)


class Originals:
    """Original values that must not be used as replacements, in any spelling."""

    def __init__(self) -> None:
        self._values: set[str] = set()
        self._lengths: set[int] = set()

    def add(self, name: str, value: str) -> bool:
        """Add a value; returns whether it is new."""
        is_new = value not in self._values
        self._values |= {value, *normal_forms(name, value)}
        if len(value) <= MAX_PART_CHARS:
            self._lengths.add(len(value))
        return is_new

    def has(self, name: str, value: str) -> bool:
        """Whether a text is one of the values, ignoring separators and case."""
        return value in self._values or not self._values.isdisjoint(normal_forms(name, value))

    def occur_in(self, name: str, text: str) -> bool:
        """Whether a text is or contains one of the values; linear time."""
        parts = (text[at : at + length] for length in self._lengths for at in range(len(text) - length + 1))
        return self.has(name, text) or any(part in self._values for part in parts)


class Pseudonymizer:
    """Replacements for the values of one document, or of all documents with a key.

    Args:
        secret: secret of the run; anyone who knows it can guess and verify original values.
        document_id: equal values of different documents get different replacements.
        key: key of the user, used instead of secret and document.
        keep: "form" keeps separators and parts such as the area code; with "none", each type has one form.
    """

    def __init__(self, secret: bytes, document_id: str, key: bytes | None = None, keep: Keep = "form") -> None:
        self._secret, self._keep = key or secret, keep
        self._identity = "" if key else f"{document_id}\0"
        self._known: dict[tuple[str, str], str | None] = {}
        self._refused: dict[tuple[str, str], set[str]] = {}
        self.originals = Originals()

    def exclude(self, values: Iterable[tuple[str, str]]) -> None:
        """Exclude original values (type, text) from the replacements, including those already drawn."""
        if sum(self.originals.add(name, value) for name, value in values):
            for (name, value), fake in list(self._known.items()):
                if fake is not None and self.originals.occur_in(name, fake):
                    del self._known[name, value]

    def replacement(self, name: str, value: str) -> str | None:
        """The replacement of a value of type ``name``; None if no draw is suitable, so the value must be masked."""
        if (name, value) not in self._known:
            self._known[name, value] = next(self._draws(name, value), None)
            if self._known[name, value] is None:
                log.warning("a value was masked because no replacement of type %s was suitable", name)
        return self._known[name, value]

    def reject(self, name: str, value: str) -> None:
        """Draw another replacement for a value, because the current one is not suitable in its context."""
        fake = self._known.pop((name, value), None)
        if fake is not None:
            self._refused.setdefault((name, value), set()).add(fake)

    def _draws(self, name: str, value: str) -> Iterator[str]:
        """Suitable replacements of a value, always in the same order."""
        kind = BY_NAME[name]
        what = f"{self._identity}{name}\0{canonical_form(name, value)}"
        rng = Random(int.from_bytes(hmac.digest(self._secret, what.encode(), "sha256")[:8], "big"))
        refused = self._refused.get((name, value), ())
        # if no draw in an unusual spelling is detected again, use the plain form of the type
        for shape in (value, kind.example) if self._keep == "form" else (kind.example,):
            for _ in range(MAX_DRAWS):
                try:
                    plain = shape if _PLAIN.fullmatch(shape) else narrow(shape)
                    fake = widen_like(shape, kind.fake(rng, plain))
                except _UNREADABLE:  # the value includes adjacent text
                    break
                label = kind.context[0]
                expected = [Span(len(label) + 1, len(label) + 1 + len(fake), name)]
                is_free = fake not in refused and not self.originals.occur_in(name, fake)
                if is_free and find_pii(f"{label} {fake}", {name}) == expected:
                    yield fake


def canonical_form(name: str, value: str) -> str:
    """The common form of all spellings of a value: digits without separators, phone numbers without country code.

    E-mail addresses, mentions, handles and IP addresses keep their punctuation and lose only case; URLs keep both.
    """
    value = narrow(value)
    if name == "TEL":
        return _COUNTRY.sub("", digits_of(value)).removeprefix("0")
    if name == "URL":
        return value
    if name in ("EMAIL", "MENTION", "IP"):
        return value.casefold()
    return letters_and_digits(value)


def letters_and_digits(value: str) -> str:
    """The letters and digits of a value in lower case: its common form when it is read as any type."""
    return "".join(c for c in narrow(value).casefold() if c.isalnum())


def normal_forms(name: str, value: str) -> tuple[str, str]:
    """The common forms of a value as its own type and as any type."""
    return canonical_form(name, value), letters_and_digits(value)
