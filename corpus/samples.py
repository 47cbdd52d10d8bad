"""A bounded sample of dropped text per rule, the same whatever the order of work: the texts with the smallest hash."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

SAMPLE_CHARS = 1_000
READABLE = pa.schema([(name, pa.string()) for name in ("rule", "source", "document", "note", "text")])
SCHEMA = pa.schema([*READABLE, ("order", pa.uint64())])


class Sample(NamedTuple):
    rule: str
    source: str
    document: str
    note: str
    text: str
    order: int


class Samples:
    """Up to ``limit`` samples per rule; ``seed`` decides which."""

    def __init__(self, limit: int, seed: int) -> None:
        self._limit = limit
        self._seed = seed
        self._rules: dict[str, list[Sample]] = {}

    def add(self, rule: str, source: str, document: str, text: str, note: str = "") -> None:
        identity = f"{self._seed}\0{document}\0{text}".encode()
        order = int.from_bytes(hashlib.blake2b(identity, digest_size=8).digest(), "big")
        self.keep(Sample(rule, source, document, note, text, order))

    def keep(self, sample: Sample) -> None:
        """Take in a sample of an earlier collection."""
        rows = self._rules.setdefault(sample.rule, [])
        rows.append(sample)
        if len(rows) > 4 * self._limit + 100:
            self._rules[sample.rule] = self._smallest(rows)

    def __iter__(self) -> Iterator[Sample]:
        for rule in sorted(self._rules):
            yield from self._smallest(self._rules[rule])

    def _smallest(self, rows: list[Sample]) -> list[Sample]:
        return sorted(rows, key=lambda row: (row.order, row.document, row.text))[: self._limit]


def write_samples(path: Path, samples: list[Sample], *, with_order: bool) -> None:
    """``order`` is for merging only: a hash of the original text would let others guess what was replaced in it."""
    rows = [sample._replace(text=sample.text[:SAMPLE_CHARS])._asdict() for sample in samples]
    schema = SCHEMA if with_order else READABLE
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path, compression="zstd")


def read_samples(path: Path) -> list[Sample]:
    return [Sample(**row) for row in pq.read_table(path).to_pylist()]
