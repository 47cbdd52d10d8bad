"""Cover values in the sentences of one document, and map what the detector finds afterwards back to the original.

Covers are spans of the original sentences, so every round of hiding starts from the original:
```
original   전화 010-9123-4567,010-9765-4321     cover 3..16
rewritten  전화 010-0123-9876,010-9765-4321     the detector finds 17..30, which is not covered: cover 17..30 next
```
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import NamedTuple

from corpus.pii.detect import Span
from corpus.pii.replace import Pseudonymizer

log = logging.getLogger(__name__)

REDRAW_UNTIL, MASK_VALUES_FROM, MASK_SENTENCES_FROM, MASK_DOCUMENT_FROM, MAX_ROUNDS = 3, 8, 12, 14, 16
"""Escalation by round: draw other replacements, use the mode of the run, mask values, mask whole sentences, and mask
every sentence of the document."""

_LETTER = re.compile(r"[^\W_]")
MAY_CONTAIN_PII = re.compile(r"[\d@]|[A-Za-z][.:]")

FindSpans = Callable[[Sequence[str]], list[list[Span]]]
"""Finds the personal data of texts that are read together."""


class _Cover(NamedTuple):
    """Hides ``text[start:end]`` of an original sentence, a value of type ``name``."""

    start: int
    end: int
    name: str
    mode: str


class _Place(NamedTuple):
    """Position of a cover in the rewritten sentence."""

    start: int
    end: int
    cover: _Cover


class CoveredTexts:
    """The original sentences of a document, their covers, and the sentences rewritten with these covers."""

    def __init__(self, texts: Sequence[str], mode: str, pseudonyms: Pseudonymizer) -> None:
        self._texts, self._mode, self._pseudonyms = texts, mode, pseudonyms
        self._covers: list[list[_Cover]] = [[] for _ in texts]
        self._places: list[list[_Place]] = [[] for _ in texts]
        self.rewritten = list(texts)

    def hidden_spans(self) -> list[list[Span]]:
        """The covered values as spans of the original sentences."""
        return [[Span(cover.start, cover.end, cover.name) for cover in covers] for covers in self._covers]

    def are_replacements(self, sentence_spans: Sequence[Sequence[Span]]) -> bool:
        """Whether all spans found in the rewritten sentences are our replacements and none is an original value."""
        return all(
            self._is_replacement(number, span, places)
            for number, spans in enumerate(sentence_spans)
            for span, _, places in self._overlapping(number, spans)
        )

    def add_covers(self, sentence_spans: Sequence[Sequence[Span]], round_: int) -> None:
        """Cover what was found in the rewritten sentences; later rounds cover more (see ``REDRAW_UNTIL``)."""
        if round_ < MASK_DOCUMENT_FROM:
            for number, spans in enumerate(sentence_spans):
                new = [
                    self._cover_of(number, span, first, places, round_)
                    for span, first, places in self._overlapping(number, spans)
                    if not (self._is_replacement(number, span, places) or self._redraw(number, places, round_))
                ]
                self._covers[number] = _merge([*self._covers[number], *new]) if new else self._covers[number]
            return
        log.warning("personal data was still found in a document after %d rounds; the document was masked", round_)
        name = next(spans[0].type for spans in sentence_spans if spans)
        for number, text in enumerate(self._texts):
            if round_ > MASK_DOCUMENT_FROM or MAY_CONTAIN_PII.search(text):
                self._covers[number] = [_Cover(0, len(text), name, "mask")]

    def rewrite(self) -> list[str]:
        self._pseudonyms.exclude(
            (cover.name, text[cover.start : cover.end])
            for text, covers in zip(self._texts, self._covers, strict=True)
            for cover in covers
        )
        for number, covers in enumerate(self._covers):
            self.rewritten[number], self._places[number] = self._rewrite_text(self._texts[number], covers)
        return self.rewritten

    def _rewrite_text(self, text: str, covers: Sequence[_Cover]) -> tuple[str, list[_Place]]:
        news, places, position = [], [], 0
        length = 0
        for cover in covers:
            value = text[cover.start : cover.end]
            fake = self._pseudonyms.replacement(cover.name, value) if cover.mode == "replace" else None
            new = f"[{cover.name}]" if cover.mode == "tag" else _mask(value) if fake is None else fake
            start = length + cover.start - position
            length, position = start + len(new), cover.end
            places.append(_Place(start, length, cover))
            news.append(new)
        return _fill_in(text, covers, news), places

    def _overlapping(self, number: int, spans: Sequence[Span]) -> Iterator[tuple[Span, int, Sequence[_Place]]]:
        """Each span of a rewritten sentence, the number of covers that end before it, and the covers it overlaps."""
        places, first = self._places[number], 0
        for span in spans:
            while first < len(places) and places[first].end <= span.start:
                first += 1
            last = first
            while last < len(places) and places[last].start < span.end:
                last += 1
            yield span, first, places[first:last]

    def _is_replacement(self, number: int, span: Span, places: Sequence[_Place]) -> bool:
        """Whether a span consists of replacements, with at most punctuation between them, and is no original value."""
        text, position = self.rewritten[number], span.start
        if not _LETTER.search(text, span.start, span.end):
            return True
        if self._mode != "replace":
            return False
        for start, end, _ in (*places, (span.end, span.end, None)):
            if _LETTER.search(text, position, max(position, start)):
                return False
            position = max(position, end)
        return not self._pseudonyms.originals.has(span.type, text[span.start : span.end])

    def _redraw(self, number: int, places: Sequence[_Place], round_: int) -> bool:
        """In the first rounds, draw other replacements: the span may be caused by the replacement alone."""
        drawn = [place.cover for place in places if place.cover.mode == "replace" and round_ <= REDRAW_UNTIL]
        for cover in drawn:
            self._pseudonyms.reject(cover.name, self._texts[number][cover.start : cover.end])
        return bool(drawn)

    def _cover_of(self, number: int, span: Span, first: int, places: Sequence[_Place], round_: int) -> _Cover:
        """A cover of the whole part of the original that a span of the rewritten sentence comes from."""
        if round_ >= MASK_SENTENCES_FROM:
            return _Cover(0, len(self._texts[number]), span.type, "mask")
        start = self._original_position(number, span.start, first)
        end = self._original_position(number, span.end, first + len(places))
        if places:
            start = min(start, places[0].cover.start)
            end = max(end, places[-1].cover.end)
        is_masked = round_ >= MASK_VALUES_FROM or (places and self._mode != "replace")
        return _Cover(start, end, span.type, "mask" if is_masked else self._mode)

    def _original_position(self, number: int, position: int, before: int) -> int:
        """The original position of a position in the rewritten sentence, after the first ``before`` covers."""
        if not before:
            return position
        place = self._places[number][before - 1]
        return max(place.cover.end, place.cover.end + position - place.end)


def _merge(covers: Iterable[_Cover]) -> list[_Cover]:
    """Sorted covers; overlapping ones are joined and take type and mode of the widest."""
    merged: list[_Cover] = []
    for cover in sorted(covers, key=lambda cover: (cover.start, -cover.end)):
        if merged and cover.start < merged[-1].end:
            last = merged[-1]
            widest = max(last, cover, key=lambda cover: (cover.end - cover.start, cover.mode == "mask"))
            merged[-1] = _Cover(last.start, max(last.end, cover.end), widest.name, widest.mode)
        else:
            merged.append(cover)
    return merged


def drop_texts(texts: Sequence[str], find: FindSpans) -> tuple[list[str | None], list[list[Span]]]:
    """Drop texts with personal data until the detector finds none; late rounds drop all texts that may contain any.

    Returns:
        the texts, None for dropped ones, and why each was dropped.
    """
    spans: list[list[Span]] = [[] for _ in texts]
    remaining = dict(enumerate(texts))
    for round_ in count():
        text_spans = find(list(remaining.values()))
        if not any(text_spans):
            break
        for n, here in zip(list(remaining), text_spans, strict=True):
            spans[n] = here
            is_suspect = round_ == MASK_VALUES_FROM and MAY_CONTAIN_PII.search(texts[n])
            if here or is_suspect or round_ > MASK_VALUES_FROM:
                del remaining[n]
    return [remaining.get(n) for n in range(len(texts))], spans


def cover_spans(text: str, spans: Sequence[Span], mode: str) -> str:
    """``text`` with spans as ``[TYPE]`` (mode "tag"), or with ``*`` for their letters and digits (mode "mask")."""
    news = [_mask(text[span.start : span.end]) if mode == "mask" else f"[{span.type}]" for span in spans]
    return _fill_in(text, spans, news)


def _fill_in(text: str, places: Sequence[Span | _Cover], news: Sequence[str]) -> str:
    pieces, position = [], 0
    for place, new in zip(places, news, strict=True):
        pieces += [text[position : place.start], new]
        position = place.end
    return "".join(pieces) + text[position:]


def _mask(value: str) -> str:
    return _LETTER.sub("*", value)
