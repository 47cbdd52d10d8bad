"""Samples for the reader of a run: dropped sentences, and text before and after a change.

At most ``SAMPLES_PER_RULE`` per rule, those with the smallest hashes, so the order of work does not matter. Personal
data is shown as ``[TEL]``. The detector runs before a text is cut, because half a number is not detected but may still
be personal data, and once more on the result.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from corpus.card.page import first_difference
from corpus.pii.cover import cover_spans
from corpus.pii.hide import DocumentHider, HiddenDocument
from corpus.reading.read import Record

SAMPLES_PER_RULE = 50
SAMPLE_CHARS = 1_000
DROPPED = ("rule", "source", "document", "note", "text")
CHANGED = ("rule", "source", "document", "before", "after")
DROPPED_NAME, CHANGED_NAME = "dropped.json", "changed.json"
PII = "pii."
AROUND_CHARS = 60
CONTEXT_CHARS = 300  # labels are at most 30 characters before a value


class Sample(NamedTuple):
    """A sample; only the first five fields are published. ``note`` and ``text`` of a changed text: before and after.

    ``order`` is a hash of the original text, ``replacements`` are fingerprints, ``context`` is the sentence before.
    """

    rule: str
    source: str
    document: str
    note: str
    text: str
    order: int
    replacements: Sequence[int] = ()
    context: str = ""

    def without_pii(self, hider: DocumentHider) -> Sample:
        """The sample as it may be published."""
        note, in_note = hider.excerpt(self.note, SAMPLE_CHARS, self.replacements)
        text, in_text = hider.excerpt(self.text, SAMPLE_CHARS, self.replacements)
        return self._replace(note=note, text=text, replacements=[*in_note, *in_text], context="")


class Samples:
    """Up to ``limit`` samples per rule; ``seed`` decides which."""

    def __init__(self, seed: int, limit: int = SAMPLES_PER_RULE) -> None:
        self._seed, self._limit = seed, limit
        self._rules: dict[str, list[Sample]] = {}
        self._bar: dict[str, int] = {}

    def order_of(self, rule: str, document: str, text: str) -> int | None:
        """The hash by which samples are ordered; None if enough samples have smaller hashes."""
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


def write_unit_samples(path: Path, samples: Iterable[Sample]) -> None:
    """Write the samples of a unit, to be merged with those of other units."""
    path.write_text(json.dumps(list(samples)), "utf-8")


def read_unit_samples(path: Path) -> list[Sample]:
    return [Sample(*row) for row in json.loads(path.read_text("utf-8"))]


def write_samples(path: Path, samples: Iterable[Sample], columns: tuple[str, ...]) -> None:
    rows = [sample[: len(columns)] for sample in samples]
    table = {name: pa.array([row[n] for row in rows], pa.string()) for n, name in enumerate(columns)}
    pq.write_table(pa.table(table), path, compression="zstd")


class UnitSamples:
    def __init__(self, seed: int, hider: DocumentHider) -> None:
        self._dropped, self._changed, self._hider = Samples(seed), Samples(seed), hider

    def drop(self, rule: str, record: Record, sentence: str, before: str = "", note: str = "") -> None:
        """A dropped sentence; ``before`` is the previous sentence, which may contain a label."""
        order = self._dropped.order_of(rule, record.id, sentence)
        if order is not None:
            self._dropped.keep(Sample(rule, record.source, record.id, note, sentence, order, context=before))

    def change(self, rule: str, record: Record, before: str, after: str) -> None:
        order = self._changed.order_of(rule, record.id, record.place)
        if order is not None:
            start = first_difference(before, after)
            around = slice(max(0, start - CONTEXT_CHARS), start + CONTEXT_CHARS)
            self._changed.keep(Sample(rule, record.source, record.id, before[around], after[around], order))

    def hide(self, record: Record, sentences: list[str], hidden: HiddenDocument) -> None:
        """Sentences with personal data, before and after it was hidden."""
        for n, (text, spans) in enumerate(zip(hidden.sentences, hidden.spans, strict=True)):
            for rule in sorted({f"{PII}{span.type}" for span in spans}):
                order = self._changed.order_of(rule, record.id, f"{record.place} {n}")
                if order is not None:
                    before, known = cover_spans(sentences[n], spans, "tag"), hidden.replacements
                    self._changed.keep(Sample(rule, record.source, record.id, before, text or "", order, known))

    def write(self, folder: Path) -> None:
        """Write both kinds without personal data."""
        dropped = (s._replace(text=self._hider.tag(s.text, s.context)) for s in self._dropped)
        changed = (s if s.rule.startswith(PII) else self._excerpt(s) for s in self._changed)
        for name, samples in ((DROPPED_NAME, dropped), (CHANGED_NAME, changed)):
            write_unit_samples(folder / name, (sample.without_pii(self._hider) for sample in samples))

    def _excerpt(self, sample: Sample) -> Sample:
        start = first_difference(sample.note, sample.text)
        left = max(sample.note.rfind("\n", 0, start) + 1, start - AROUND_CHARS)
        right = start + 2 * AROUND_CHARS
        before, after = (self._hider.cut_between_values(text, left, right) for text in (sample.note, sample.text))
        return sample._replace(note=before, text=after)
