"""Replace personal data by invented values of the same type and form (paper section 2.3, Table 29).

A replacement depends on seed, document, type and value alone: the same value in a document always gets the same one,
whatever its separators, and no number of workers changes it. With a secret key it depends on key, type and value: alike
across a corpus, at the price that the key gives the values away. Stricter than the paper's: every replacement is found
again by the detector, and where blocks exist that belong to nobody it comes from them.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
from collections.abc import Sequence
from random import Random

from corpus.pii.detect import Span, find_pii
from corpus.pii.shapes import digits_of, narrow, widen_like
from corpus.pii.table import BY_NAME

log = logging.getLogger(__name__)

MAX_DRAWS = 50
_COUNTRY = re.compile("^(?:00)?82(?=[0-9]{8})|^0")


class Pseudonymizer:
    """Replacements for the texts of one document, or of all documents if there is a key.

    Args:
        seed: of the corpus.
        document_id: values of different documents are replaced independently.
        key: secret; where given, seed and document play no part.
    """

    def __init__(self, seed: int, document_id: str, key: bytes | None = None) -> None:
        self._key = key
        self._identity = f"{seed}\0{document_id}"
        self._known: dict[tuple[str, str], str] = {}

    def replace(self, text: str, spans: Sequence[Span]) -> str:
        """``text`` with every span replaced; ``spans`` as ``find_pii`` returns them, the rest stays as it is."""
        originals = {text[span.start : span.end] for span in spans}
        pieces, position = [], 0
        for span in spans:
            value = text[span.start : span.end]
            pieces += [text[position : span.start], self._replacement(span.type, value, originals)]
            position = span.end
        return "".join(pieces) + text[position:]

    def _replacement(self, name: str, value: str, originals: set[str]) -> str:
        key = (name, value)
        if key not in self._known:
            # with a key the rest of the text must not matter, so only the value itself is kept out of its replacement
            self._known[key] = self._draw(name, value, {value} if self._key else originals)
        return self._known[key]

    def _draw(self, name: str, value: str, originals: set[str]) -> str:
        kind = BY_NAME[name]
        rng = Random(self._seed_for(name, value))
        # odd writings that no draw is found again in are replaced by a value in the plainest form of the type
        for shape in (value, kind.example):
            for _ in range(MAX_DRAWS):
                fake = widen_like(shape, kind.fake(rng, narrow(shape)))
                if not any(original in fake for original in originals) and _is_found(name, kind.context[0], fake):
                    return fake
        log.warning("document needs a %s that no draw was fit for: an unfit one was taken", name)
        while fake == value:
            fake = kind.fake(rng, kind.example)
        return fake

    def _seed_for(self, name: str, value: str) -> int:
        what = f"{name}\0{canonical(name, value)}"
        if self._key:
            digest = hmac.digest(self._key, what.encode(), "sha256")[:8]
        else:
            digest = hashlib.blake2b(f"{self._identity}\0{what}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big")


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
    if name in ("EMAIL", "MENTION", "IP"):
        return value.casefold()
    return "".join(c for c in value.casefold() if c.isalnum())


def _is_found(name: str, label: str, fake: str) -> bool:
    announced = f"{label} {fake}"
    return find_pii(announced) == [Span(len(label) + 1, len(announced), name)]
