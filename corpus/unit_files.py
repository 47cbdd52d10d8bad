"""What the first pass leaves of a unit: its documents, and what judges them without reading them again.

Fingerprints and signatures are taken of the text before personal data went, so that duplicates are judged by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from corpus.config import DeduplicateConfig
from corpus.documents.shards import SCHEMA
from corpus.duplicates.exact import fingerprint, fingerprint_folded, write_prints
from corpus.duplicates.near import band_keys, signatures
from corpus.reading.read import Record

PART_SCHEMA = pa.schema(
    [
        *SCHEMA,
        ("place", pa.string()),  # makes an id that others have, too, one of its own
        ("pii", pa.list_(pa.int32())),  # sentence number * 16 + type number, for each value
        ("marks", pa.list_(pa.uint64())),  # of the replacements in it, see corpus.audit
        ("seal", pa.uint64()),
    ]
)
PART_NAME = "documents.parquet"
DOCUMENTS, SENTENCES, IDS = "documents", "sentences", "ids"  # what fingerprints are taken of
LENGTHS_NAME = "lengths.npy"  # sentences of each document
SIGNATURES_NAME, KEYS_NAME = "signatures.npy", "band-keys.npy"


class Row(NamedTuple):
    """A document: its sentences as they were and as they stay, the rest as in ``PART_SCHEMA``."""

    record: Record
    originals: list[str]
    sentences: list[str]
    pii: Sequence[int] = ()
    marks: Sequence[int] = ()
    seal: int = 0


class PartWriter:
    """Writes the part batch by batch, the rest when it is closed."""

    def __init__(self, folder: Path, config: DeduplicateConfig) -> None:
        self._folder, self._config = folder, config
        self._writer = pq.ParquetWriter(
            folder / PART_NAME, PART_SCHEMA, compression="lz4", use_dictionary=["source"], write_statistics=False
        )
        self._prints: dict[str, list[int]] = {DOCUMENTS: [], SENTENCES: [], IDS: []}
        self._lengths: list[int] = []
        self._signatures: list[np.ndarray] = []

    def write(self, rows: Sequence[Row]) -> None:
        values = [(r.record.id, r.record.source, r.sentences, r.record.place, r.pii, r.marks, r.seal) for r in rows]
        columns = [[row[n] for row in values] for n in range(len(PART_SCHEMA))]
        self._writer.write_table(pa.table(columns, schema=PART_SCHEMA))
        self._lengths += [len(row.sentences) for row in rows]
        self._prints[IDS] += [fingerprint(row.record.id.encode()) for row in rows]
        if rows:
            documents, sentences = fingerprint_folded([row.originals for row in rows])
            self._prints[DOCUMENTS] += documents
            self._prints[SENTENCES] += sentences
        if self._config.near.enabled:
            self._signatures.append(signatures(["\n".join(row.originals) for row in rows]))

    def close(self) -> None:
        self._writer.close()
        for name, prints in self._prints.items():
            write_prints(self._folder, name, prints)
        np.save(self._folder / LENGTHS_NAME, np.array(self._lengths, np.uint32))
        if self._config.near.enabled:
            signatures_DP = np.concatenate(self._signatures)
            np.save(self._folder / SIGNATURES_NAME, signatures_DP)
            np.save(self._folder / KEYS_NAME, band_keys(signatures_DP, self._config.near.threshold))
