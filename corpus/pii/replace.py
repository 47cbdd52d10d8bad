"""Draw invented values of the same type and form for personal data (paper section 2.3, Table 29).

A replacement depends on secret, document, type and value: the same value in a document always gets the same one,
regardless of its separators, and no number of workers changes it. With a key it depends on key, type and value: alike
across a corpus, at the price that the key gives the values away. Stricter than the paper's: every replacement is found
again by the detector, none is or holds another value of its document, and where blocks exist that belong to nobody it
comes from them.
"""

from __future__ import annotations

import hmac
import logging
import re
from collections.abc import Iterable, Iterator
from random import Random

from corpus.pii.detect import Span, find_pii
from corpus.pii.formats.shapes import digits_of, narrow, widen_like
from corpus.pii.formats.table import BY_NAME

log = logging.getLogger(__name__)

MAX_DRAWS = 50
MAX_PART_CHARS = 64
"""Longer values are compared as a whole only: a draw never holds one by chance, and looking would not be linear."""

_COUNTRY = re.compile("^(?:00)?82(?=[0-9]{8})|^0")
_UNREADABLE = (AssertionError, ValueError, LookupError, AttributeError, StopIteration)


class Originals:
    """Values that must not come back, in any writing."""

    def __init__(self) -> None:
        self._values: set[str] = set()
        self._lengths: set[int] = set()

    def add(self, name: str, value: str) -> bool:
        """Take in a value; whether it was new."""
        is_new = value not in self._values
        self._values |= {value, *writings(name, value)}
        if len(value) <= MAX_PART_CHARS:
            self._lengths.add(len(value))
        return is_new

    def has(self, name: str, value: str) -> bool:
        """Whether a text is one of the values, in other separators or case if need be."""
        return value in self._values or not self._values.isdisjoint(writings(name, value))

    def are_in(self, name: str, text: str) -> bool:
        """Whether a text is or holds one of the values; time is linear in the text."""
        parts = (text[at : at + length] for length in self._lengths for at in range(len(text) - length + 1))
        return self.has(name, text) or any(part in self._values for part in parts)


class Pseudonymizer:
    """Replacements for the values of one document, or of all documents if there is a key.

    Args:
        secret: of the run; whoever knows it can test guesses of what a replacement stands for.
        document_id: values of different documents are replaced independently.
        key: secret of the user; where given, secret and document play no part.
    """

    def __init__(self, secret: bytes, document_id: str, key: bytes | None = None) -> None:
        self._secret = key or secret
        self._identity = "" if key else f"{document_id}\0"
        self._known: dict[tuple[str, str], str | None] = {}
        self._refused: dict[tuple[str, str], set[str]] = {}
        self.originals = Originals()

    def keep_out(self, values: Iterable[tuple[str, str]]) -> None:
        """Type and text of values of the document: none will be a replacement, and none that is one stays."""
        if sum(self.originals.add(name, value) for name, value in values):
            for (name, value), fake in list(self._known.items()):
                if fake is not None and self.originals.are_in(name, fake):
                    del self._known[name, value]

    def replacement(self, name: str, value: str) -> str | None:
        """What stands for a value of type ``name``; None where no draw is fit, so that the value has to be masked."""
        if (name, value) not in self._known:
            self._known[name, value] = next(self._draws(name, value), None)
            if self._known[name, value] is None:
                log.warning("a document needs a %s that no draw was fit for: the value was masked", name)
        return self._known[name, value]

    def refuse(self, name: str, value: str) -> None:
        """Draw another replacement for a value, because this one does not fit where it stands."""
        fake = self._known.pop((name, value), None)
        if fake is not None:
            self._refused.setdefault((name, value), set()).add(fake)

    def _draws(self, name: str, value: str) -> Iterator[str]:
        """Fit replacements of a value, always the same ones in the same order."""
        kind = BY_NAME[name]
        what = f"{self._identity}{name}\0{canonical(name, value)}"
        rng = Random(int.from_bytes(hmac.digest(self._secret, what.encode(), "sha256")[:8], "big"))
        refused = self._refused.get((name, value), ())
        # odd writings that no draw is found again in are replaced by a value in the plainest form of the type
        for shape in (value, kind.example):
            for _ in range(MAX_DRAWS):
                try:
                    fake = widen_like(shape, kind.fake(rng, narrow(shape)))
                except _UNREADABLE:  # of a value that grew by what stood beside it
                    break
                is_free = fake not in refused and not self.originals.are_in(name, fake)
                if is_free and _is_found(name, kind.context[0], fake):
                    yield fake


def canonical(name: str, value: str) -> str:
    """What two writings of a value have in common: digits without separators, telephone numbers without country code.

    Dots and the like tell e-mail addresses, URLs, mentions and IP addresses apart, so there only case is put aside (and
    not in URLs, whose paths keep it).
    """
    value = narrow(value)
    if name == "TEL":
        return _COUNTRY.sub("", digits_of(value)).removeprefix("0")
    if name == "URL":
        return value
    if name in ("EMAIL", "MENTION", "IP", "HANDLE"):
        return value.casefold()
    return letters_of(value)


def letters_of(value: str) -> str:
    """The letters and digits of a value in one case: what it has in common with itself read as another type."""
    return "".join(c for c in narrow(value).casefold() if c.isalnum())


def writings(name: str, value: str) -> tuple[str, str]:
    """What any writing of a value shares with it: as its own type, and as any other."""
    return canonical(name, value), letters_of(value)


def _is_found(name: str, label: str, fake: str) -> bool:
    announced = f"{label} {fake}"
    return find_pii(announced, {name}) == [Span(len(label) + 1, len(announced), name)]
