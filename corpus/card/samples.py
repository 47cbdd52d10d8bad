"""Samples for the reader of a run: sentences that were dropped, text before and after a change.

Bounded, and the same for any order of work: of each rule those with the smallest hash. Of dropped text ``note`` says
why and ``text`` is the sentence; of changed text they are what it was and what it is.

Personal data stand there as ``[TEL]``. They are looked for where they stood, with the words around them, and before the
text is cut to size: half a number would no longer be recognized and yet be somebody's. The result is looked at once
more, alone, as readers get it.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from corpus.audit import Guard
from corpus.pii.cover import cover
from corpus.pii.hide import Protected
from corpus.reading.read import Record

SAMPLES_PER_RULE = 50
SAMPLE_CHARS = 1_000
DROPPED = ("rule", "source", "document", "note", "text")
CHANGED = ("rule", "source", "document", "before", "after")
DROPPED_NAME, CHANGED_NAME = "dropped.json", "changed.json"
PII = "pii."
AROUND_CHARS = 60
CONTEXT_CHARS = 300  # labels stand at most 30 characters before a value


class Sample(NamedTuple):
    """``order`` is a hash of the original text, which would let others test guesses, ``marks`` are of the replacements
    in the text, ``context`` is what stood before a dropped sentence; none of them is published."""

    rule: str
    source: str
    document: str
    note: str
    text: str
    order: int
    marks: Sequence[int] = ()
    context: str = ""

    def shown(self, guard: Guard | None) -> Sample:
        """As it may be published."""
        if not guard:
            return self._replace(note=self.note[:SAMPLE_CHARS], text=self.text[:SAMPLE_CHARS], context="")
        (note, in_note), (text, in_text) = (guard.show(t, SAMPLE_CHARS, self.marks) for t in (self.note, self.text))
        return self._replace(note=note, text=text, marks=[*in_note, *in_text], context="")


class Samples:
    """Up to ``limit`` samples per rule; ``seed`` decides which."""

    def __init__(self, seed: int, limit: int = SAMPLES_PER_RULE) -> None:
        self._seed, self._limit = seed, limit
        self._rules: dict[str, list[Sample]] = {}
        self._bar: dict[str, int] = {}

    def place(self, rule: str, document: str, text: str) -> int | None:
        """Where this text would stand; None where there are enough before it, so that nothing need be prepared."""
        identity = f"{self._seed}\0{document}\0{text}".encode()
        order = int.from_bytes(hashlib.blake2b(identity, digest_size=8).digest(), "big")
        return order if self._limit and order <= self._bar.get(rule, order) else None

    def keep(self, sample: Sample) -> None:
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


def leave_samples(path: Path, samples: Iterable[Sample]) -> None:
    """Write samples of a unit, to be merged with those of others."""
    path.write_text(json.dumps(list(samples)), "utf-8")


def take_samples(path: Path) -> list[Sample]:
    return [Sample(*row) for row in json.loads(path.read_text("utf-8"))]


def write_samples(path: Path, samples: Iterable[Sample], columns: tuple[str, ...]) -> None:
    """The table that readers get."""
    rows = [sample[: len(columns)] for sample in samples]
    table = {name: pa.array([row[n] for row in rows], pa.string()) for n, name in enumerate(columns)}
    pq.write_table(pa.table(table), path, compression="zstd")


class UnitSamples:
    """Samples of one unit, up to ``SAMPLES_PER_RULE`` per rule; without a guard where the run keeps personal data."""

    def __init__(self, seed: int, guard: Guard | None) -> None:
        self._dropped, self._changed = Samples(seed), Samples(seed)
        self._guard = guard

    def drop(self, rule: str, record: Record, sentence: str, before: str = "", note: str = "") -> None:
        """A sentence that goes; ``before`` is the sentence before it, which may name what it holds."""
        order = self._dropped.place(rule, record.id, sentence)
        if order is not None:
            self._dropped.keep(Sample(rule, record.source, record.id, note, sentence, order, context=before))

    def change(self, rule: str, record: Record, before: str, after: str) -> None:
        """A text that a rule changed."""
        order = self._changed.place(rule, record.id, record.place)
        if order is not None:
            start = _first_difference(before, after)
            around = slice(max(0, start - CONTEXT_CHARS), start + CONTEXT_CHARS)
            self._changed.keep(Sample(rule, record.source, record.id, before[around], after[around], order))

    def protect(self, record: Record, sentences: list[str], protected: Protected) -> None:
        """Sentences with personal data, before and after it was replaced."""
        for n, (text, spans) in enumerate(zip(protected.sentences, protected.spans, strict=True)):
            for rule in sorted({f"{PII}{span.type}" for span in spans}):
                order = self._changed.place(rule, record.id, f"{record.place} {n}")
                if order is not None:
                    before = cover(sentences[n], spans, "tag")
                    marks = self._guard.marks(protected.sentences, protected.left) if self._guard else ()
                    self._changed.keep(Sample(rule, record.source, record.id, before, text or "", order, marks))

    def write(self, folder: Path) -> None:
        """Leave both kinds without personal data."""
        dropped = (sample._replace(text=self._hide(sample.text, sample.context)) for sample in self._dropped)
        changed = (sample if sample.rule.startswith(PII) else self._excerpt(sample) for sample in self._changed)
        for name, samples in ((DROPPED_NAME, dropped), (CHANGED_NAME, changed)):
            leave_samples(folder / name, (sample.shown(self._guard) for sample in samples))

    def _hide(self, text: str, context: str = "") -> str:
        return self._guard.tag(text, context) if self._guard else text

    def _excerpt(self, sample: Sample) -> Sample:
        start = _first_difference(sample.note, sample.text)
        left = max(sample.note.rfind("\n", 0, start) + 1, start - AROUND_CHARS)
        before, after = (self._cut(text, left, start + 2 * AROUND_CHARS) for text in (sample.note, sample.text))
        return sample._replace(note=before, text=after)

    def _cut(self, text: str, left: int, right: int) -> str:
        """``text[left:right]`` with whole values in place of those that reach into it."""
        pieces, position = [], left
        for span in self._guard.protection.find(text) if self._guard else ():
            if span.end > left and span.start < right:
                pieces += [text[position : max(position, span.start)], f"[{span.type}]"]
                position = span.end
        return self._hide(("".join(pieces) + text[position:right]).strip())


def _first_difference(a: str, b: str) -> int:
    return bisect_left(range(min(len(a), len(b))), True, key=lambda n: a[: n + 1] != b[: n + 1])
