"""Files that the first pass writes for a unit: its documents, and arrays that later passes read instead of the text.

Fingerprints are computed from the original text, before personal data is hidden.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from corpus.config import CorpusConfig
from corpus.documents.shards import SCHEMA
from corpus.duplicates.exact import MAY_REPEAT, MIN_REPEAT_CHARS, fingerprint, fingerprint_documents, write_fingerprints
from corpus.reading.read import Record

UNIT_SCHEMA = pa.schema(
    [
        *SCHEMA,
        ("place", pa.string()),  # appended to ids that are not unique
        ("pii", pa.list_(pa.int32())),  # sentence number * 16 + type number, for each value
        ("replacements", pa.list_(pa.uint64())),  # their fingerprints, see corpus.pii.hide
        ("digest", pa.uint64()),
    ]
)
DOCUMENTS_NAME = "documents.parquet"
DOCUMENTS, SENTENCES, IDS, LINES = "documents", "sentences", "ids", "lines"  # kinds of fingerprints
LENGTHS_NAME = "lengths.npy"  # number of sentences of each document


class CleanedDocument(NamedTuple):
    """A document; fields without a comment are as in ``UNIT_SCHEMA``."""

    record: Record
    originals: list[str]  # its sentences with personal data
    sentences: list[str]
    pii: Sequence[int] = ()
    replacements: Sequence[int] = ()
    digest: int = 0
    lines: Collection[str] = ()  # of its text, if it is searched for boilerplate


class UnitWriter:
    """Writes the documents of a unit in batches, and the arrays when it is closed."""

    def __init__(self, folder: Path, config: CorpusConfig) -> None:
        self._folder, self._finds_lines = folder, config.quality.enabled
        self._writer = pq.ParquetWriter(
            folder / DOCUMENTS_NAME, UNIT_SCHEMA, compression="lz4", use_dictionary=["source"], write_statistics=False
        )
        self._fingerprints: dict[str, list[int]] = {DOCUMENTS: [], SENTENCES: [], IDS: [], LINES: []}
        self._lengths: list[int] = []

    def write(self, batch: Sequence[CleanedDocument]) -> None:
        rows = [
            (d.record.id, d.record.source, d.sentences, d.record.place, d.pii, d.replacements, d.digest) for d in batch
        ]
        columns = [[row[n] for row in rows] for n in range(len(UNIT_SCHEMA))]
        self._writer.write_table(pa.table(columns, schema=UNIT_SCHEMA))
        self._lengths += [len(document.sentences) for document in batch]
        self._fingerprints[IDS] += [fingerprint(document.record.id.encode()) for document in batch]
        if batch:
            documents, sentences = fingerprint_documents(
                [document.originals for document in batch], 1 if self._finds_lines else MIN_REPEAT_CHARS
            )
            self._fingerprints[DOCUMENTS] += documents
            self._fingerprints[SENTENCES] += self._compare_lines(batch, sentences) if self._finds_lines else sentences

    def _compare_lines(self, batch: Sequence[CleanedDocument], prints: list[int]) -> list[int]:
        """Add fingerprints by source of lines and long sentences; returns those of long sentences."""
        is_long = []
        rest = iter(prints)
        for document in batch:
            of_source = fingerprint(document.record.source.encode())
            for sentence, own in zip(document.originals, rest, strict=False):
                is_long.append(len(sentence) >= MIN_REPEAT_CHARS)
                is_compared = document.lines and (is_long[-1] or sentence in document.lines)
                self._fingerprints[LINES].append(own ^ of_source if is_compared else MAY_REPEAT)
        return [own if long else MAY_REPEAT for own, long in zip(prints, is_long, strict=True)]

    def close(self) -> None:
        self._writer.close()
        for name, fingerprints in self._fingerprints.items():
            write_fingerprints(self._folder, name, fingerprints)
        np.save(self._folder / LENGTHS_NAME, np.array(self._lengths, np.uint32))
