"""Find personal data in Korean text: ``find_pii`` (paper section 2.3 and Table 29).

```
text ─ fold ─▶ plain copy ─ one joint search for clues ─▶ windows ─ formats tried in them ─▶ candidates ─ settle ─▶ spans
```
The joint search passes over text without a digit, an ``@`` or a host at once; patterns run around clues only. Where
candidates overlap, the more telling one wins: the strength of its format, plus two when the nearest label, or the head
of its column, announces its type.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from operator import attrgetter
from typing import Any

from corpus.pii.fold import DISGUISED_DIGITS, Folded, fold_disguises, fold_signs, widen, worded_disguises
from corpus.pii.labels import Labels
from corpus.pii.table import TABLE
from corpus.pii.tables import Tables
from corpus.pii.types import BY_LABEL, CERTAIN, LABEL_BONUS, NUMBERS, OTHER, SCORES, WEAK, Format, PiiType, Scope
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
    score: float = 1.0
    why: tuple[str, ...] = ("pattern",)


_LABELS = Labels(TABLE)
MAX_CLUSTER_DIGITS = 32
_DIGIT = re.compile("[0-9]")
_DATE = re.compile(r"(?:19|20)[0-9]{2}(?P<sep>[-./] ?)[0-9]{1,2}(?P=sep)[0-9]{1,2}")


def _by_scope() -> dict[Scope, list[tuple[PiiType, Format]]]:
    grouped: dict[Scope, list[tuple[PiiType, Format]]] = {}
    for kind in TABLE:
        for form in kind.formats:
            grouped.setdefault(form.scope, []).append((kind, form))
    return grouped


FORMS = _by_scope()
_NUMBER_FORMS = [
    [(kind, form) for kind, form in FORMS[NUMBERS] if form.digits <= count] for count in range(MAX_CLUSTER_DIGITS + 1)
]
"""Formats of ``NUMBERS`` that so many digits can hold."""
_DISGUISE = Scope("0-9", DISGUISED_DIGITS, 0, 0)


def _join_clues(scopes: Iterable[Scope]) -> re.Pattern[str]:
    """The clues of all scopes as one pattern, with one character class in front: text without costs one fast pass."""
    rests: dict[str, list[str]] = {}
    for scope in scopes:
        rests.setdefault(scope.first, []).append(scope.rest)
    ways = (f"(?<=[{first}])(?={'|'.join(f'(?:{rest})' for rest in group)})" for first, group in rests.items())
    return re.compile(f"[{''.join(rests)}](?:{'|'.join(ways)})")


_CLUE = _join_clues([*FORMS, _DISGUISE])
_SCOPES_AT: dict[str, list[Scope]] = {
    c: [scope for scope in FORMS if re.match(f"[{scope.first}]", c)] for c in map(chr, (*range(0x20, 0x7F), ord("맥")))
}


def find_pii(text: str, types: Collection[str] | None = None, label: str = "") -> list[Span]:
    """Personal data in ``text``: sorted, never overlapping, in time linear in the length of the text.

    Spans cover the value only: no particle, no punctuation of the sentence, no name of a bank.

    Args:
        types: names of the types to report; the sixteen of ``PII_TYPES`` if None.
        label: words that announce the value from outside the text, such as the name of its column or key.
    """
    front = f"{label[-40:]}: " if label else ""
    found = _spans(front + text)
    if front:
        found = [replace(s, start=s.start - len(front), end=s.end - len(front)) for s in found if s.start >= len(front)]
    return found if types is None else [span for span in found if span.type in types]


def _spans(text: str) -> list[Span]:
    folded = fold_signs(text)
    if places := worded_disguises(folded.text):
        folded = fold_disguises(folded, places)
    clues = list(_CLUE.finditer(folded.text))
    disguised = [
        clue.start() for clue in clues if clue[0].isdigit() and _DISGUISE.clue.match(folded.text, clue.start())
    ]
    if disguised:
        unfolded, folded = folded, fold_disguises(folded, disguised)
        if folded is not unfolded:
            clues = list(_CLUE.finditer(folded.text))
    return settle(_around_clues(folded.text, clues), folded) if clues else []


def settle(candidates: Iterable[Candidate], folded: Folded) -> list[Span]:
    """The spans that win where candidates overlap, sorted, as places of the text before it was folded."""
    kept: list[Candidate] = []
    for candidate in sorted(candidates, key=attrgetter("start")):
        if kept and kept[-1].end > candidate.start and _rank(candidate) > _rank(kept[-1]):
            kept.pop()
        if not kept or kept[-1].end <= candidate.start:
            kept.append(candidate)
    return [Span(*folded.original(c.start, c.end), c.kind.name, c.score, c.why) for c in kept]


def find_pii_in_sentences(sentences: Sequence[str], types: Collection[str] | None = None) -> list[list[Span]]:
    """Personal data of each sentence of a document; a label may stand in the sentence before its value.

    A value that a line end parts is reported in both sentences, each its part.
    """
    starts = list(accumulate((len(sentence) + 1 for sentence in sentences), initial=0))
    found: list[list[Span]] = [[] for _ in sentences]
    for span in find_pii("\n".join(sentences), types):
        number = bisect_right(starts, span.start) - 1
        while span.end >= starts[number + 1]:
            head = len(sentences[number]) + starts[number]
            found[number].append(replace(span, start=span.start - starts[number], end=head - starts[number]))
            number += 1
            span = replace(span, start=starts[number])
        if span.start < span.end:
            found[number].append(replace(span, start=span.start - starts[number], end=span.end - starts[number]))
    return found


def detect_records(records: Iterable[dict[str, Any]], field: str = "text") -> Iterator[dict[str, Any]]:
    """Each record with ``spans``, a list of ``[start, end, TYPE]``, in order and one for one."""
    for record in records:
        yield record | {"spans": [[span.start, span.end, span.type] for span in find_pii(record[field])]}


def _rank(candidate: Candidate) -> tuple[int, int]:
    return candidate.strength, candidate.end - candidate.start


# --- candidates


def _around_clues(text: str, clues: Sequence[re.Match[str]]) -> Iterator[Candidate]:
    """All formats, each tried around the clues of its scope."""
    announced = Announced(text)
    windows: dict[Scope, list[tuple[int, int]]] = {}
    cluster_end = 0
    for clue in clues:
        here = clue.start()
        for scope in _SCOPES_AT.get(clue[0], ()):
            if scope is NUMBERS and here < cluster_end:
                continue
            if match := scope.clue.match(text, here):
                if scope is NUMBERS:
                    cluster_end = match.end()
                    yield from _numbers(text, match, announced)
                else:
                    widen(windows.setdefault(scope, []), here - scope.before, match.end() + scope.after)
    for scope, places in windows.items():
        for start, end in places:
            yield from _try_formats(text, FORMS[scope], start, end, announced)


def _numbers(text: str, cluster: re.Match[str], announced: Announced) -> Iterator[Candidate]:
    digits = len(_DIGIT.findall(cluster[0]))
    if digits <= 8 and _DATE.fullmatch(cluster[0]):
        return
    forms = _NUMBER_FORMS[min(digits, MAX_CLUSTER_DIGITS)]
    yield from _try_formats(
        text, forms, max(0, cluster.start() - NUMBERS.before), cluster.end() + NUMBERS.after, announced
    )


def _try_formats(
    text: str, forms: Sequence[tuple[PiiType, Format]], start: int, end: int, announced: Announced
) -> Iterator[Candidate]:
    for kind, form in forms:
        if form.needs and not form.needs.search(text, start, end):
            continue
        for match in form.pattern.finditer(text, start, end):
            yield from judge(match, kind, form, announced)


class Announced:
    """What the words around a value of a text, or the head of its column, say that it is."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _tables(self) -> Tables:
        return Tables(self._text)

    @cached_property
    def _has_rows(self) -> bool:
        return "\n" in self._text or "<t" in self._text

    def type_of(self, start: int, end: int) -> str | None:
        """A type's name, ``OTHER`` for nobody's data, None if nothing is announced."""
        if self._has_rows and (header := self._tables.header(start)) and (meaning := _LABELS.meaning(header)):
            return meaning
        return _LABELS.nearest(self._text, start, end)


def judge(match: re.Match[str], kind: PiiType, form: Format, announced: Announced) -> Iterator[Candidate]:
    """The candidate that a match of ``form`` is; nothing where its check or the labels around rule it out."""
    group = "value" if "value" in form.pattern.groupindex else 0
    start, end = match.span(group)
    label = announced.type_of(start, end)
    is_announced = label == kind.name
    is_ruled_out = not is_announced if form.strength == BY_LABEL else label == OTHER and form.strength < CERTAIN
    if form.strength == WEAK and not is_announced and match.string[:start][-1:] == "_":
        is_ruled_out = True  # a part of the name of a file
    if is_ruled_out or not form.check(match, label):
        return
    if kind.name == "URL":
        end = start + len(trim_url(match[group]))
    why = ("pattern", *["label"] * is_announced, *["checksum"] * form.has_checksum)
    score = min(1.0, SCORES[min(form.strength, len(SCORES) - 1)] + 0.2 * is_announced + 0.1 * form.has_checksum)
    yield Candidate(start, end, form.strength + LABEL_BONUS * is_announced, kind, score, why)
