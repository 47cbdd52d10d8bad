"""Replace personal data by invented values of the same type and form (paper section 2.3, Table 29).

A replacement depends on seed, document, type and value alone: the same value in a document always gets the same one,
whatever its separators, and no number of workers changes it. Stricter than the paper's: every replacement is found
again by the detector, and where blocks exist that belong to nobody it comes from them.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Any

from corpus.pii.detect import Span, find_pii
from corpus.pii.table import BY_NAME

log = logging.getLogger(__name__)

MAX_DRAWS = 50


class Pseudonymizer:
    """Replacements for the texts of one document.

    Args:
        seed: of the corpus.
        document_id: values of different documents are replaced independently.
    """

    def __init__(self, seed: int, document_id: str) -> None:
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
            self._known[key] = self._draw(name, value, originals)
        return self._known[key]

    def _draw(self, name: str, value: str, originals: set[str]) -> str:
        kind = BY_NAME[name]
        same = "".join(c for c in value.casefold() if c.isalnum())
        digest = hashlib.blake2b(f"{self._identity}\0{name}\0{same}".encode(), digest_size=8).digest()
        rng = Random(int.from_bytes(digest, "big"))
        # odd writings that no draw is found again in are replaced by a value in the plainest form of the type
        for shape in (value, kind.example):
            for _ in range(MAX_DRAWS):
                fake = kind.fake(rng, shape)
                if not any(original in fake for original in originals) and _is_found(name, kind.context[0], fake):
                    return fake
        log.warning("document needs a %s that no draw was fit for: an unfit one was taken", name)
        while fake == value:
            fake = kind.fake(rng, kind.example)
        return fake


def replace_records(
    records: Iterable[dict[str, Any]], seed: int, field: str = "text", id_field: str = "id"
) -> Iterator[dict[str, Any]]:
    """Each record with ``field`` pseudonymized, in order and one for one.

    Records with the same ``id_field`` are one document; a record without it is a document known by its position.
    """
    for position, record in enumerate(records):
        text = record[field]
        document = Pseudonymizer(seed, str(record.get(id_field, position)))
        yield record | {field: document.replace(text, find_pii(text))}


def _is_found(name: str, label: str, fake: str) -> bool:
    announced = f"{label} {fake}"
    return find_pii(announced) == [Span(len(label) + 1, len(announced), name)]
