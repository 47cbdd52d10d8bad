"""Samples for the reader of a run: sentences that were dropped, text before and after a change.

Bounded, and the same for any order of work: of each rule those with the smallest hash. Of dropped text ``note`` says
why and ``text`` is the sentence; of changed text they are what it was and what it is.

Personal data stand there as ``[TEL]``. They are looked for where they stood, with the words around them, and before the
text is cut to size: half a number would no longer be recognized and yet be somebody's. The result is looked at once
more, alone, as readers get it.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from corpus.audit import Guard
from corpus.pii.cover import cover
from corpus.pii.detect import find_pii
from corpus.pii.protect import Protected
from corpus.reading.read import Record

SAMPLE_CHARS = 1_000
DROPPED = ("rule", "source", "document", "note", "text")
CHANGED = ("rule", "source", "document", "before", "after")
DROPPED_NAME = "dropped.parquet"
CHANGED_NAME = "changed.parquet"
PII = "pii."
AROUND_CHARS = 60
CONTEXT_CHARS = 300  # labels stand at most 30 characters before a value


class Sample(NamedTuple):
    """``context`` is what stood before a dropped sentence, ``marks`` are of the replacements in the text; neither is
    published."""

    rule: str
    source: str
    document: str
    note: str
    text: str
    order: int
    context: str = ""
    marks: tuple[int, ...] = ()


class Samples:
    """Up to ``limit`` samples per rule; ``seed`` decides which."""

    def __init__(self, limit: int, seed: int) -> None:
        self._limit = limit
        self._seed = seed
        self._rules: dict[str, list[Sample]] = {}
        self._bar: dict[str, int] = {}

    def place(self, rule: str, document: str, text: str) -> int | None:
        """Where this text would stand; None where there are enough before it, so that nothing need be prepared."""
        identity = f"{self._seed}\0{document}\0{text}".encode()
        order = int.from_bytes(hashlib.blake2b(identity, digest_size=8).digest(), "big")
        return order if self._limit and order <= self._bar.get(rule, order) else None

    def add(self, rule: str, source: str, document: str, text: str, note: str = "") -> None:
        order = self.place(rule, document, text)
        if order is not None:
            self.keep(Sample(rule, source, document, note, text, order))

    def keep(self, sample: Sample) -> None:
        """Take in a sample of an earlier collection."""
        rows = self._rules.setdefault(sample.rule, [])
        rows.append(sample)
        if len(rows) > 4 * self._limit + 100:
            self._rules[sample.rule] = rows = self._smallest(rows)
            self._bar[sample.rule] = rows[-1].order if rows else 0

    def __iter__(self) -> Iterator[Sample]:
        for rule in sorted(self._rules):
            yield from self._smallest(self._rules[rule])

    def _smallest(self, rows: list[Sample]) -> list[Sample]:
        return sorted(rows, key=lambda row: (row.order, row.document, row.text))[: self._limit]


def write_samples(path: Path, samples: list[Sample], columns: tuple[str, ...], *, for_merging: bool = False) -> None:
    """``for_merging``: with marks and order, which is a hash of the original text and would let others test guesses."""
    fields = [(name, pa.string()) for name in columns]
    if for_merging:
        fields += [("order", pa.uint64()), ("marks", pa.list_(pa.uint64()))]
    schema = pa.schema(fields)
    rows = [
        (s.rule, s.source, s.document, s.note[:SAMPLE_CHARS], s.text[:SAMPLE_CHARS], s.order, s.marks)[: len(fields)]
        for s in samples
    ]
    table = pa.table(
        [pa.array([row[n] for row in rows], field.type) for n, field in enumerate(schema)],
        schema=schema,
    )
    pq.write_table(table, path, compression="zstd")


def read_samples(path: Path) -> list[Sample]:
    """Samples that were written for merging."""
    columns = pq.read_table(path).to_pydict().values()
    return [
        Sample(rule, source, document, note, text, order, marks=tuple(marks))
        for rule, source, document, note, text, order, marks in zip(*columns, strict=True)
    ]


class UnitSamples:
    """Samples of one unit, up to ``limit`` a rule; without a guard where the run keeps personal data."""

    def __init__(self, limit: int, seed: int, guard: Guard | None) -> None:
        self._dropped = Samples(limit, seed)
        self._changed = Samples(limit, seed)
        self._guard = guard

    def drop(self, rule: str, record: Record, sentence: str, before: str = "", note: str = "") -> None:
        """A sentence that goes; ``before`` is the sentence before it, which may name what it holds."""
        order = self._dropped.place(rule, record.id, sentence)
        if order is not None:
            self._dropped.keep(Sample(rule, record.source, record.id, note, sentence, order, before))

    def change(self, rule: str, record: Record, before: str, after: str) -> None:
        """A text that a rule changed."""
        order = self._changed.place(rule, record.id, record.place)
        if order is not None:
            start = _first_difference(before, after)
            left = max(0, start - CONTEXT_CHARS)
            was, is_now = (text[left : start + CONTEXT_CHARS] for text in (before, after))
            self._changed.keep(Sample(rule, record.source, record.id, was, is_now, order))

    def protect(self, record: Record, sentences: list[str], protected: Protected) -> None:
        """Sentences with personal data, before and after it was replaced."""
        for n, (text, spans) in enumerate(zip(protected.sentences, protected.spans, strict=True)):
            for name in sorted({span.type for span in spans}):
                order = self._changed.place(f"{PII}{name}", record.id, f"{record.place} {n}")
                if order is not None:
                    before = cover(sentences[n], spans, "tag")
                    marks = tuple(self._guard.marks(protected.sentences, protected.left)) if self._guard else ()
                    sample = Sample(f"{PII}{name}", record.source, record.id, before, text or "", order, marks=marks)
                    self._changed.keep(sample)

    def write(self, folder: Path) -> None:
        """Write both kinds without personal data."""
        dropped = [sample._replace(text=self._hide(sample.text, sample.context)) for sample in self._dropped]
        changed = [sample if sample.rule.startswith(PII) else self._excerpt(sample) for sample in self._changed]
        write_samples(folder / DROPPED_NAME, [self._alone(sample) for sample in dropped], DROPPED, for_merging=True)
        write_samples(folder / CHANGED_NAME, [self._alone(sample) for sample in changed], CHANGED, for_merging=True)

    def _hide(self, text: str, context: str = "") -> str:
        return self._guard.tag(text, context) if self._guard else text

    def _alone(self, sample: Sample) -> Sample:
        if not self._guard:
            return sample
        note, text = (self._guard.show(part, SAMPLE_CHARS, sample.marks) for part in (sample.note, sample.text))
        return sample._replace(note=note.text, text=text.text, marks=(*note.marks, *text.marks))

    def _excerpt(self, sample: Sample) -> Sample:
        start = _first_difference(sample.note, sample.text)
        left = max(sample.note.rfind("\n", 0, start) + 1, start - AROUND_CHARS)
        before, after = (self._cut(text, left, start + 2 * AROUND_CHARS) for text in (sample.note, sample.text))
        return sample._replace(note=before, text=after)

    def _cut(self, text: str, left: int, right: int) -> str:
        """``text[left:right]`` with whole values in place of those that reach into it."""
        pieces, position = [], left
        for span in find_pii(text, self._guard.types) if self._guard else ():
            if span.end > left and span.start < right:
                pieces += [text[position : max(position, span.start)], f"[{span.type}]"]
                position = span.end
        return self._hide(("".join(pieces) + text[position:right]).strip())


def _first_difference(a: str, b: str) -> int:
    return bisect_left(range(min(len(a), len(b))), True, key=lambda n: a[: n + 1] != b[: n + 1])
