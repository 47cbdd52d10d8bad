"""Bounded samples per rule, the same whatever the order of work: those with the smallest hash.

Of dropped text ``note`` says why and ``text`` is the sentence; of changed text they are what it was and what it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

SAMPLE_CHARS = 1_000
DROPPED = ("rule", "source", "document", "note", "text")
CHANGED = ("rule", "source", "document", "before", "after")


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
