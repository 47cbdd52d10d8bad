"""Hide the personal data of texts in one of four ways: replace (the paper's), mask, tag, or drop the sentence.

```
문의 010-0123-4567입니다.   replace  문의 010-1802-9935입니다.
                            mask     문의 ***-****-****입니다.
                            tag      문의 [TEL]입니다.
                            drop     (no sentence)
```
The result is looked at again, because what stands around a value decides what is found: with its left neighbour changed,
the second number of a list may be one. Whatever is found then and is not ours goes as well, round by round; all rounds
start from the text as it was, so a value is replaced once. The number of rounds is bounded, and the last ones take more
than they need: first the value is masked, then all of its sentence.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Literal, NamedTuple, get_args

from corpus.documents import BadInput
from corpus.pii.detect import Span, find_pii, find_pii_in_sentences
from corpus.pii.key import random_secret
from corpus.pii.replace import Pseudonymizer
from corpus.sentences import split_sentences

Mode = Literal["replace", "mask", "tag", "drop"]
MODES: tuple[Mode, ...] = get_args(Mode)
REDRAWS, IN_ITS_WAY, MASKED, ROUNDS = 3, 8, 12, 16
"""Rounds with other draws, rounds that hide as the mode says, rounds that mask, and all; the rest mask sentences."""

_SIGN = re.compile(r"[^\W_]")
_MAY_HOLD_ONE = re.compile(r"[\d@]|[A-Za-z][.:]")

Look = Callable[[Sequence[str]], list[list[Span]]]
IsKnown = Callable[[str], bool]


class Protected(NamedTuple):
    """Sentences without personal data, None where one was dropped.

    ``spans``: what was hidden in each, places in the sentence as it was. ``left``: what the detector finds in each now,
    replacements all of them (in no other mode than ``replace`` there are any).
    """

    sentences: list[str | None]
    spans: list[list[Span]]
    left: list[list[Span]]


@dataclass(frozen=True, slots=True)
class Protection:
    """How a run hides personal data.

    Args:
        secret: replacements follow from it (see ``Pseudonymizer``); a new random one unless given.
        key: makes replacements alike across documents and runs, in place of ``secret``. Neither is in the ``repr``.
        types: names of the types to hide; the sixteen of ``PII_TYPES`` if None.
    """

    mode: Mode = "replace"
    secret: bytes = field(default_factory=random_secret, repr=False)
    key: bytes | None = field(default=None, repr=False)
    types: frozenset[str] | None = None

    def hide_in_sentences(self, sentences: Sequence[str], document_id: str, known: IsKnown | None = None) -> Protected:
        """The sentences of a document, one for one and in order; labels of the sentence before count.

        Args:
            known: whether a value found is a replacement of an earlier call, which stays.

        Raises:
            BadInput: something is found after all rounds; the message says where, not what.
        """

        def look(texts: Sequence[str]) -> list[list[Span]]:
            return _unless(known, texts, find_pii_in_sentences(texts, self.types))

        return self._hide(sentences, document_id, look, look)

    def hide(self, text: str, document_id: str, label: str = "") -> str:
        """A text as a whole; in mode ``drop`` sentences go together with the white space behind them.

        Args:
            label: words that announce what the text holds, such as the name of its column.

        Raises:
            BadInput: as ``hide_in_sentences``.
        """

        def look(texts: Sequence[str]) -> list[list[Span]]:
            return [find_pii(text, self.types, label) for text in texts]

        if self.mode != "drop":
            return self._hide([text], document_id, look, look).sentences[0] or ""
        if not find_pii(text, self.types, label):
            return text
        pieces = _sentences_with_blanks(text)
        kept = self._hide(pieces, document_id, look, lambda texts: _find_in_pieces(texts, self.types, label)).sentences
        return "".join(piece for piece in kept if piece is not None)

    def _hide(self, texts: Sequence[str], document_id: str, look: Look, look_for_drops: Look) -> Protected:
        if self.mode == "drop":
            return _drop(texts, document_id, look_for_drops)
        found = look(texts)
        if not any(found):
            return Protected(list(texts), found, found)
        document = _Document(texts, self.mode, Pseudonymizer(self.secret, document_id, self.key))
        for step in range(ROUNDS):
            if not document.cover(found, step):
                return Protected([*document.written], document.hidden(), found)
            found = look(document.write())
        raise _still_there(document_id, found)


class _Cover(NamedTuple):
    """What hides ``text[start:end]`` of the original, a value of type ``name``."""

    start: int
    end: int
    name: str
    mode: str


class _Place(NamedTuple):
    """Where a cover stands in the text as it was written."""

    start: int
    end: int
    cover: _Cover


class _Document:
    """The texts of a document as they were, what hides their values, and the texts as they are written with it."""

    def __init__(self, texts: Sequence[str], mode: Mode, pseudonyms: Pseudonymizer) -> None:
        self._texts, self._mode, self._pseudonyms = texts, mode, pseudonyms
        self._covers: list[list[_Cover]] = [[] for _ in texts]
        self._places: list[list[_Place]] = [[] for _ in texts]
        self.written = list(texts)

    def hidden(self) -> list[list[Span]]:
        """The values hidden, as spans of the original texts."""
        return [[Span(cover.start, cover.end, cover.name) for cover in covers] for covers in self._covers]

    def cover(self, found: Sequence[Sequence[Span]], step: int) -> bool:
        """Take in what was found in the texts as written; whether anything has to be written again."""
        changes = [self._cover_text(number, spans, step) for number, spans in enumerate(found) if spans]
        return any(changes)

    def write(self) -> list[str]:
        """The texts with everything hidden that is known by now."""
        self._pseudonyms.keep_out(
            (cover.name, text[cover.start : cover.end])
            for text, covers in zip(self._texts, self._covers, strict=True)
            for cover in covers
        )
        for number, covers in enumerate(self._covers):
            if covers:
                self.written[number], self._places[number] = self._write_text(self._texts[number], covers)
        return self.written

    def _write_text(self, text: str, covers: Sequence[_Cover]) -> tuple[str, list[_Place]]:
        pieces, places, position, length = [], [], 0, 0
        for cover in covers:
            kept, value = text[position : cover.start], self._write_value(text[cover.start : cover.end], cover)
            pieces += [kept, value]
            length += len(kept)
            places.append(_Place(length, length + len(value), cover))
            length, position = length + len(value), cover.end
        return "".join(pieces) + text[position:], places

    def _write_value(self, value: str, cover: _Cover) -> str:
        fake = self._pseudonyms.replacement(cover.name, value) if cover.mode == "replace" else None
        return f"[{cover.name}]" if cover.mode == "tag" else _mask(value) if fake is None else fake

    def _cover_text(self, number: int, spans: Sequence[Span], step: int) -> bool:
        covers, places = self._covers[number], self._places[number]
        new: list[_Cover] = []
        is_changed, first = False, 0
        for span in spans:
            while first < len(places) and places[first].end <= span.start:
                first += 1
            last = first
            while last < len(places) and places[last].start < span.end:
                last += 1
            touched = places[first:last]
            if self._is_ours(number, span, touched):
                continue
            is_changed = True
            if not self._redraw(number, touched, step):
                new.append(self._widened(number, span, first, touched, step))
        if new:
            self._covers[number] = _merge([*covers, *new])
        return is_changed

    def _is_ours(self, number: int, span: Span, touched: Sequence[_Place]) -> bool:
        """Whether a span of the written text is replacements alone, with signs between them, and no original."""
        if self._mode != "replace" or not touched:
            return False
        text, position = self.written[number], span.start
        for place in touched:
            if _SIGN.search(text[position : max(position, place.start)]):
                return False
            position = max(position, place.end)
        rest = text[position : span.end] if position < span.end else ""
        return not (_SIGN.search(rest) or self._pseudonyms.originals.has(span.type, text[span.start : span.end]))

    def _redraw(self, number: int, touched: Sequence[_Place], step: int) -> bool:
        """Other replacements in the first rounds: what was found may come of this one alone."""
        drawn = [place.cover for place in touched if place.cover.mode == "replace"]
        if not drawn or step > REDRAWS:
            return False
        for cover in drawn:
            self._pseudonyms.refuse(cover.name, self._texts[number][cover.start : cover.end])
        return True

    def _widened(self, number: int, span: Span, first: int, touched: Sequence[_Place], step: int) -> _Cover:
        """A cover of all of the original that a span of the written text came of."""
        if step >= MASKED:
            return _Cover(0, len(self._texts[number]), span.type, "mask")
        start = self._original_place(number, span.start, first)
        end = self._original_place(number, span.end, first + len(touched))
        if touched:
            start = min(start, touched[0].cover.start)
            end = max(end, touched[-1].cover.end)
        is_masked = step >= IN_ITS_WAY or (touched and self._mode != "replace")
        return _Cover(start, end, span.type, "mask" if is_masked else self._mode)

    def _original_place(self, number: int, position: int, before: int) -> int:
        """Where in the original a place of the written text stands that ``before`` covers end before or reach."""
        places = self._places[number]
        if not before:
            return position
        place = places[before - 1]
        return max(place.cover.end, place.cover.end + position - place.end)


def _merge(covers: Iterable[_Cover]) -> list[_Cover]:
    """Covers in order, those that overlap as one; the widest one says how."""
    merged: list[_Cover] = []
    for cover in sorted(covers, key=lambda cover: (cover.start, -cover.end)):
        if merged and cover.start < merged[-1].end:
            last = merged[-1]
            widest = max(last, cover, key=lambda cover: (cover.end - cover.start, cover.mode == "mask"))
            merged[-1] = _Cover(last.start, max(last.end, cover.end), widest.name, widest.mode)
        else:
            merged.append(cover)
    return merged


def _drop(texts: Sequence[str], document_id: str, look: Look) -> Protected:
    """Without the texts in which something is found, until nothing is; where that goes on, without all that might."""
    spans: list[list[Span]] = [[] for _ in texts]
    kept = list(range(len(texts)))
    for step in range(MASKED):
        found = look([texts[n] for n in kept])
        if not any(found):
            stays = set(kept)
            return Protected([text if n in stays else None for n, text in enumerate(texts)], spans, [[] for _ in texts])
        for n, here in zip(kept, found, strict=True):
            spans[n] = here
        goes = {n for n, here in zip(kept, found, strict=True) if here}
        if step >= IN_ITS_WAY:
            goes |= {n for n in kept if step > IN_ITS_WAY or _MAY_HOLD_ONE.search(texts[n])}
        kept = [n for n in kept if n not in goes]
    raise _still_there(document_id, found)


def replace_records(
    records: Iterable[dict[str, Any]], protection: Protection, field: str = "text", id_field: str = "id"
) -> Iterator[dict[str, Any]]:
    """Each record with the personal data of ``field`` hidden, in order and one for one.

    Records with the same ``id_field`` are one document; a record without it is a document known by its position. In
    mode ``drop`` a record stays, if need be with an empty text.

    Raises:
        BadInput: a record whose ``field`` is missing or no text.
    """
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
        pieces += [text[position : span.start], _mask(value) if mode == "mask" else f"[{span.type}]"]
        position = span.end
    return "".join(pieces) + text[position:]


def _mask(value: str) -> str:
    return _SIGN.sub("*", value)


def _unless(known: IsKnown | None, texts: Sequence[str], found: list[list[Span]]) -> list[list[Span]]:
    if known is None:
        return found
    return [
        [span for span in spans if not known(text[span.start : span.end])]
        for text, spans in zip(texts, found, strict=True)
    ]


def _find_in_pieces(pieces: Sequence[str], types: frozenset[str] | None, label: str) -> list[list[Span]]:
    """What is found in a text, for each piece that it reaches into; places are those of the text."""
    starts = list(accumulate(map(len, pieces), initial=0))
    found: list[list[Span]] = [[] for _ in pieces]
    for span in find_pii("".join(pieces), types, label):
        for number in range(bisect_right(starts, span.start) - 1, bisect_right(starts, span.end - 1)):
            found[number].append(span)
    return found


def _sentences_with_blanks(text: str) -> list[str]:
    """The sentences of a text, each with the white space behind it, and what stands before the first."""
    starts, position = [], 0
    for sentence in split_sentences(text):
        position = text.index(sentence, position)
        starts.append(position)
        position += len(sentence)
    bounds = [0, *starts, len(text)]
    return [text[start:end] for start, end in zip(bounds[:-1], bounds[1:], strict=True)]


def _still_there(document_id: str, found: Sequence[Sequence[Span]]) -> BadInput:
    number, span = next((number, spans[0]) for number, spans in enumerate(found) if spans)
    name = cover(document_id, find_pii(document_id), "tag")
    return BadInput(
        f"document {name}, sentence {number + 1}, characters {span.start} to {span.end}: a {span.type} is found again after "
        f"{ROUNDS} rounds of hiding; take the document out, or use mode drop"
    )
