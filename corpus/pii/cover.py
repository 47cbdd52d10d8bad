"""The texts of a document while they are hidden: what covers their values, and what they look like with it.

Covers stand for places of the texts as they were. What the detector finds in the texts as written is taken back to
those places, so that every round of hiding starts from the original:
```
original   전화 010-9123-4567,010-9765-4321     cover 3..16
written    전화 010-0123-9876,010-9765-4321     found 17..30, which no cover stands for: original 17..30, covered next
```
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from corpus.pii.detect import Span
from corpus.pii.replace import Pseudonymizer

log = logging.getLogger(__name__)

REDRAWS, IN_ITS_WAY, MASKED, ALL_MASKED, ROUNDS = 3, 8, 12, 14, 16
"""Until which round other replacements are drawn, the mode says how to hide, values are masked, and sentences; the last
two mask all of the document."""

_LETTER = re.compile(r"[^\W_]")
MAY_HOLD_ONE = re.compile(r"[\d@]|[A-Za-z][.:]")


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


class Covered:
    """The texts of a document as they were, what hides their values, and the texts as they are written with it."""

    def __init__(self, texts: Sequence[str], mode: str, pseudonyms: Pseudonymizer) -> None:
        self._texts, self._mode, self._pseudonyms = texts, mode, pseudonyms
        self._covers: list[list[_Cover]] = [[] for _ in texts]
        self._places: list[list[_Place]] = [[] for _ in texts]
        self.written = list(texts)

    def hidden(self) -> list[list[Span]]:
        """The values hidden, as spans of the original texts."""
        return [[Span(cover.start, cover.end, cover.name) for cover in covers] for covers in self._covers]

    def are_ours(self, found: Sequence[Sequence[Span]]) -> bool:
        """Whether all that was found in the texts as written is what was written there, and no original."""
        return all(
            self._is_ours(number, span, touched)
            for number, spans in enumerate(found)
            for span, _, touched in self._touched(number, spans)
        )

    def cover(self, found: Sequence[Sequence[Span]], step: int) -> None:
        """Take in what was found in the texts as written, so that the next writing hides it."""
        if step < ALL_MASKED:
            for number, spans in enumerate(found):
                new = [
                    self._widened(number, span, first, touched, step)
                    for span, first, touched in self._touched(number, spans)
                    if not (self._is_ours(number, span, touched) or self._redraw(number, touched, step))
                ]
                self._covers[number] = _merge([*self._covers[number], *new]) if new else self._covers[number]
            return
        log.warning("a document goes on to show personal data wherever it is changed: it was masked")
        name = next(spans[0].type for spans in found if spans)
        for number, text in enumerate(self._texts):
            if step > ALL_MASKED or MAY_HOLD_ONE.search(text):
                self._covers[number] = [_Cover(0, len(text), name, "mask")]

    def write(self) -> list[str]:
        """The texts with everything hidden that is known by now."""
        self._pseudonyms.keep_out(
            (cover.name, text[cover.start : cover.end])
            for text, covers in zip(self._texts, self._covers, strict=True)
            for cover in covers
        )
        for number, covers in enumerate(self._covers):
            self.written[number], self._places[number] = self._write_text(self._texts[number], covers)
        return self.written

    def _write_text(self, text: str, covers: Sequence[_Cover]) -> tuple[str, list[_Place]]:
        written, places, position = [], [], 0
        length = 0
        for cover in covers:
            value = text[cover.start : cover.end]
            fake = self._pseudonyms.replacement(cover.name, value) if cover.mode == "replace" else None
            new = f"[{cover.name}]" if cover.mode == "tag" else _mask(value) if fake is None else fake
            start = length + cover.start - position
            length, position = start + len(new), cover.end
            places.append(_Place(start, length, cover))
            written.append(new)
        return _joined(text, covers, written), places

    def _touched(self, number: int, spans: Sequence[Span]) -> Iterator[tuple[Span, int, Sequence[_Place]]]:
        """Each span of a written text, how many covers end before it, and the covers that it reaches into."""
        places, first = self._places[number], 0
        for span in spans:
            while first < len(places) and places[first].end <= span.start:
                first += 1
            last = first
            while last < len(places) and places[last].start < span.end:
                last += 1
            yield span, first, places[first:last]

    def _is_ours(self, number: int, span: Span, touched: Sequence[_Place]) -> bool:
        """Whether a span of the written text is replacements alone, with signs between them, and no original."""
        text, position = self.written[number], span.start
        if not _LETTER.search(text, span.start, span.end):
            return True
        if self._mode != "replace":
            return False
        for start, end, _ in (*touched, (span.end, span.end, None)):
            if _LETTER.search(text, position, max(position, start)):
                return False
            position = max(position, end)
        return not self._pseudonyms.originals.has(span.type, text[span.start : span.end])

    def _redraw(self, number: int, touched: Sequence[_Place], step: int) -> bool:
        """Other replacements in the first rounds: what was found may come of this one alone."""
        drawn = [place.cover for place in touched if place.cover.mode == "replace" and step <= REDRAWS]
        for cover in drawn:
            self._pseudonyms.refuse(cover.name, self._texts[number][cover.start : cover.end])
        return bool(drawn)

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


def cover(text: str, spans: Sequence[Span], mode: str) -> str:
    """Each value with ``*`` for letters and digits, or its type's name in its place."""
    news = [_mask(text[span.start : span.end]) if mode == "mask" else f"[{span.type}]" for span in spans]
    return _joined(text, spans, news)


def _joined(text: str, places: Sequence[Span | _Cover], news: Sequence[str]) -> str:
    pieces, position = [], 0
    for place, new in zip(places, news, strict=True):
        pieces += [text[position : place.start], new]
        position = place.end
    return "".join(pieces) + text[position:]


def _mask(value: str) -> str:
    return _LETTER.sub("*", value)
