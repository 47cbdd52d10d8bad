"""Hide the personal data of texts in one of four ways: replace (the paper's), mask, tag, or drop the sentence.

```
문의 010-0123-4567입니다.   replace  문의 010-1802-9935입니다.
                            mask     문의 ***-****-****입니다.
                            tag      문의 [TEL]입니다.
                            drop     (no sentence)
```
Masked and tagged text is looked at again until nothing is found, as what is left of overlapping values could be one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

from corpus.documents import BadInput
from corpus.pii.detect import Span, find_pii, find_pii_in_sentences
from corpus.pii.replace import Pseudonymizer
from corpus.sentences import split_sentences

Mode = Literal["replace", "mask", "tag", "drop"]
MODES: tuple[Mode, ...] = get_args(Mode)
_SIGN = re.compile(r"[^\W_]")


class Protected(NamedTuple):
    """Sentences without personal data, None where one was dropped, and what was found in each before."""

    sentences: list[str | None]
    spans: list[list[Span]]


@dataclass(frozen=True, slots=True)
class Protection:
    """How a run hides personal data.

    ``key`` makes replacements alike across documents (see ``Pseudonymizer``); it is not part of the ``repr``.
    """

    mode: Mode = "replace"
    seed: int = 0
    key: bytes | None = field(default=None, repr=False)

    def hide_in_sentences(self, sentences: Sequence[str], document_id: str) -> Protected:
        """The sentences of a document, one for one and in order; labels of the sentence before count."""
        found = find_pii_in_sentences(sentences)
        if not any(found):
            return Protected(list(sentences), found)
        if self.mode == "drop":
            return Protected([None if spans else s for s, spans in zip(sentences, found, strict=True)], found)
        if self.mode == "replace":
            document = Pseudonymizer(self.seed, document_id, self.key)
            return Protected([document.replace(s, spans) for s, spans in zip(sentences, found, strict=True)], found)
        hidden, spans_of = list(sentences), found
        while any(spans_of):
            hidden = [cover(s, spans, self.mode) for s, spans in zip(hidden, spans_of, strict=True)]
            spans_of = find_pii_in_sentences(hidden)
        return Protected([*hidden], found)

    def hide(self, text: str, document_id: str) -> str:
        """A text as a whole; in mode ``drop`` sentences go together with the white space behind them."""
        spans = find_pii(text)
        if self.mode == "replace":
            return Pseudonymizer(self.seed, document_id, self.key).replace(text, spans) if spans else text
        while spans:
            text = _without_sentences(text, spans) if self.mode == "drop" else cover(text, spans, self.mode)
            spans = find_pii(text)
        return text


def replace_records(
    records: Iterable[dict[str, Any]],
    seed: int,
    field: str = "text",
    id_field: str = "id",
    mode: Mode = "replace",
    key: bytes | None = None,
) -> Iterator[dict[str, Any]]:
    """Each record with the personal data of ``field`` hidden, in order and one for one.

    Records with the same ``id_field`` are one document; a record without it is a document known by its position. In
    mode ``drop`` a record stays, if need be with an empty text.

    Raises:
        BadInput: a record whose ``field`` is missing or no text.
    """
    protection = Protection(mode, seed, key)
    for position, record in enumerate(records):
        text = record.get(field)
        if not isinstance(text, str):
            raise BadInput(f"record {position + 1}: {field!r} must hold text; name the field that does")
        yield record | {field: protection.hide(text, str(record.get(id_field, position)))}


def cover(text: str, spans: Sequence[Span], mode: str) -> str:
    """Each value with ``*`` for letters and digits, or its type's name in its place."""
    pieces, position = [], 0
    for span in spans:
        value = text[span.start : span.end]
        pieces += [text[position : span.start], _SIGN.sub("*", value) if mode == "mask" else f"[{span.type}]"]
        position = span.end
    return "".join(pieces) + text[position:]


def _without_sentences(text: str, spans: Sequence[Span]) -> str:
    """The sentences that no span touches, each with the white space behind it, and the white space before the first."""
    places = list(_places(text))
    kept, number = [text[: places[0][0]]], 0
    for start, end in places:
        while number < len(spans) and spans[number].end <= start:
            number += 1
        if number == len(spans) or spans[number].start >= end:
            kept.append(text[start:end])
    return "".join(kept)


def _places(text: str) -> Iterator[tuple[int, int]]:
    """Where each sentence stands, from its first character to the end of the white space behind it."""
    starts = []
    position = 0
    for sentence in split_sentences(text):
        start = text.index(sentence, position)
        starts.append(start)
        position = start + len(sentence)
    yield from zip(starts, [*starts[1:], len(text)], strict=True)
