"""Find personal data in Korean text: ``find_pii`` (paper section 2.3 and Table 29).

Text without a digit, an ``@``, or a dot or colon behind a Latin letter holds none, which one search tells; the patterns
then run around their clues only. Where candidates overlap, the more telling one wins: the strength of its format, plus
two when the nearest label announces its type.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from operator import attrgetter
from typing import Any

from corpus.pii.labels import Labels
from corpus.pii.shapes import narrow
from corpus.pii.table import TABLE
from corpus.pii.types import BY_LABEL, CERTAIN, LABEL_BONUS, OTHER, Format, PiiType, Scope
from corpus.pii.url import trim_url


@dataclass(frozen=True, slots=True)
class Span:
    """``text[start:end]`` is a value of ``type``, one of ``PII_TYPES``; offsets are ``str`` indices.

    ``score`` (0..1) and ``why`` ("pattern", "label", "checksum") say how telling it is; they play no part in equality.
    """

    start: int
    end: int
    type: str
    score: float = field(default=1.0, compare=False)
    why: tuple[str, ...] = field(default=("pattern",), compare=False)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A span and how telling its format and the labels around it are."""

    start: int
    end: int
    strength: int
    kind: PiiType


_CLUE = re.compile("[0-9@０-９＠]|[A-Za-z](?:\\.[A-Za-z]|:[/A-Fa-f])")
_LABELS = Labels(TABLE)


def _by_scope() -> list[tuple[Scope, list[tuple[PiiType, Format]]]]:
    grouped: dict[Scope, list[tuple[PiiType, Format]]] = {}
    for kind in TABLE:
        for form in kind.formats:
            grouped.setdefault(form.scope, []).append((kind, form))
    return list(grouped.items())


_SCOPES = _by_scope()


def find_pii(text: str, types: Collection[str] | None = None, label: str = "") -> list[Span]:
    """Personal data in ``text``: sorted, never overlapping, in time linear in the length of the text.

    Spans cover the value only: no particle, no punctuation of the sentence, no name of a bank.

    Args:
        types: names of the types to report; the sixteen of ``PII_TYPES`` if None.
        label: words that announce the value from outside the text, such as the name of its column or key.
    """
    if not _CLUE.search(text):
        return []
    front = f"{label}: " if label else ""
    found = settle(_candidates(narrow(front + text)))
    return [
        replace(span, start=span.start - len(front), end=span.end - len(front)) if front else span
        for span in found
        if span.start >= len(front) and (types is None or span.type in types)
    ]


def settle(candidates: Iterable[Candidate]) -> list[Span]:
    """The spans that win where candidates overlap, sorted."""
    kept: list[Candidate] = []
    for candidate in sorted(candidates, key=attrgetter("start")):
        if kept and kept[-1].end > candidate.start and _rank(candidate) > _rank(kept[-1]):
            kept.pop()
        if not kept or kept[-1].end <= candidate.start:
            kept.append(candidate)
    return [Span(candidate.start, candidate.end, candidate.kind.name) for candidate in kept]


def find_pii_in_sentences(sentences: Sequence[str], types: Collection[str] | None = None) -> list[list[Span]]:
    """Personal data of each sentence of a document; a label may stand in the sentence before its value.

    Values never reach over the end of a sentence: where they seem to, the sentence is looked at alone.
    """
    starts = list(accumulate((len(sentence) + 1 for sentence in sentences), initial=0))
    found: list[list[Span]] = [[] for _ in sentences]
    torn = set()
    for span in find_pii(" ".join(sentences), types):
        number = bisect_right(starts, span.start) - 1
        if span.end >= starts[number + 1]:
            torn |= {number, number + 1}
        else:
            found[number].append(Span(span.start - starts[number], span.end - starts[number], span.type))
    for number in torn:
        found[number] = find_pii(sentences[number], types)
    return found


def detect_records(records: Iterable[dict[str, Any]], field: str = "text") -> Iterator[dict[str, Any]]:
    """Each record with ``spans``, a list of ``[start, end, TYPE]``, in order and one for one."""
    for record in records:
        yield record | {"spans": [[span.start, span.end, span.type] for span in find_pii(record[field])]}


def _rank(candidate: Candidate) -> tuple[int, int]:
    return candidate.strength, candidate.end - candidate.start


def _candidates(text: str) -> Iterator[Candidate]:
    for scope, forms in _SCOPES:
        if not scope.clue.search(text):
            continue
        for start, end in _windows(text, scope):
            for kind, form in forms:
                for match in form.pattern.finditer(text, start, end):
                    yield from judge(match, kind, form)


def _windows(text: str, scope: Scope) -> Iterator[tuple[int, int]]:
    """The surroundings of all clues, joined where they meet, so that no stretch of text is searched twice."""
    start, end = 0, -1
    for clue in scope.clue.finditer(text):
        if clue.start() - scope.before > end:
            if end >= 0:
                yield start, end
            start = max(0, clue.start() - scope.before)
        end = clue.end() + scope.after
    if end >= 0:
        yield start, end


def judge(match: re.Match[str], kind: PiiType, form: Format) -> Iterator[Candidate]:
    """The candidate that a match of ``form`` is; nothing where its check or the labels around rule it out."""
    group = "value" if "value" in form.pattern.groupindex else 0
    start, end = match.span(group)
    label = _LABELS.nearest(match.string, start, end)
    is_announced = label == kind.name
    is_ruled_out = not is_announced if form.strength == BY_LABEL else label == OTHER and form.strength < CERTAIN
    if not is_ruled_out and form.check(match, label):
        if kind.name == "URL":
            end = start + len(trim_url(match[group]))
        yield Candidate(start, end, form.strength + LABEL_BONUS * is_announced, kind)
