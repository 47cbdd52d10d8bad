"""Second pass, sequential: parts of all units to document shards, duplicates out, statistics of what is kept.

Input order decides which of two equal documents or sentences stays. Row groups stream; only fingerprints are held.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from tqdm import tqdm

from corpus.clean import PART_NAME, QUARANTINE_NAME, SAMPLES_NAME
from corpus.config import CorpusConfig
from corpus.deduplicate import first_occurrences
from corpus.documents import Document, write_shard
from corpus.pii.types import PII_TYPES
from corpus.samples import Samples, read_samples, write_samples
from corpus.statistics import Tally, count_kept

QUARANTINE_RECORDS = Path("quarantine") / "records.jsonl"
DUPLICATE_DOCUMENT = "duplicate_document"
DUPLICATE_SENTENCE = "duplicate_sentence"


def write_quarantine(units: Sequence[Path], out: Path) -> Path:
    """Join the unreadable records of all units; no file where there are none. Returns the file's path."""
    path = out / QUARANTINE_RECORDS
    shutil.rmtree(path.parent, ignore_errors=True)
    parts = [unit / QUARANTINE_NAME for unit in units if (unit / QUARANTINE_NAME).stat().st_size]
    if parts:
        path.parent.mkdir()
        with path.open("wb") as joined:
            for part in parts:
                joined.write(part.read_bytes())
    return path


def write_corpus(units: Sequence[Path], out: Path, config: CorpusConfig, tally: Tally) -> Samples:
    """Write ``out/documents`` and ``out/dropped``; adds what is kept and dropped to ``tally``; returns the samples."""
    for name in ("documents", "dropped"):
        shutil.rmtree(out / name, ignore_errors=True)
        (out / name).mkdir()
    samples = Samples(config.samples_per_rule, config.seed)
    for unit in units:
        for sample in read_samples(unit / SAMPLES_NAME):
            samples.keep(sample)
    assembly = _Assembly(units, config, tally, samples)
    documents = assembly.documents()
    for number, first in enumerate(documents):
        shard = chain([first], islice(documents, config.shard_documents - 1))
        write_shard(out / "documents" / f"shard-{number:05}.parquet", shard)
    write_samples(out / "dropped" / "samples.parquet", list(samples), with_order=False)
    return samples


class _Assembly:
    """Stream of kept documents, counted on the way."""

    def __init__(self, units: Sequence[Path], config: CorpusConfig, tally: Tally, samples: Samples) -> None:
        self.units = units
        self.tally = tally
        self.samples = samples
        self.is_first_document, self.is_first_sentence = _first(units, config.deduplicate)
        self.ids: Counter[str] = Counter()

    def documents(self) -> Iterator[Document]:
        document = sentence = 0
        for row in _rows(self.units):
            end = sentence + len(row["sentences"])
            if self.is_first_document[document]:
                yield from self._keep(row, self.is_first_sentence[sentence:end].tolist())
            else:
                self._drop_document(row)
            document, sentence = document + 1, end

    def _keep(self, row: dict[str, Any], is_first: list[bool]) -> Iterator[Document]:
        counts = self.tally[row["source"]]
        kept = tuple(s for s, first in zip(row["sentences"], is_first, strict=True) if first)
        for s, first in zip(row["sentences"], is_first, strict=True):
            if not first:
                counts[f"dropped_sentences.{DUPLICATE_SENTENCE}"] += 1
                self.samples.add(DUPLICATE_SENTENCE, row["source"], row["id"], s)
        if not kept:
            counts["dropped_documents.no_sentence_left"] += 1
            return
        count_kept(counts, kept)
        places = [divmod(code, len(PII_TYPES)) for code in row["pii"]]
        replaced = [(n, kind) for n, kind in places if is_first[n]]
        counts["sentences_with_pii"] += len({n for n, _ in replaced})
        counts.update(f"pii.{PII_TYPES[kind]}" for _, kind in replaced)
        yield Document(self._unique_id(row["id"]), row["source"], kept)

    def _drop_document(self, row: dict[str, Any]) -> None:
        counts = self.tally[row["source"]]
        counts[f"dropped_documents.{DUPLICATE_DOCUMENT}"] += 1
        counts[f"dropped_sentences.{DUPLICATE_DOCUMENT}"] += len(row["sentences"])
        self.samples.add(DUPLICATE_DOCUMENT, row["source"], row["id"], "\n".join(row["sentences"]))

    def _unique_id(self, id_: str) -> str:
        """Files may use the same ids: the second "7" becomes "7~2"."""
        self.ids[id_] += 1
        return id_ if self.ids[id_] == 1 else self._unique_id(f"{id_}~{self.ids[id_]}")


def _rows(units: Sequence[Path]) -> Iterator[dict[str, Any]]:
    for unit in tqdm(units, desc="assemble", disable=None):
        with pq.ParquetFile(unit / PART_NAME) as part:
            for group in range(part.num_row_groups):
                columns = ["id", "source", "sentences", "pii"]
                yield from part.read_row_group(group, columns=columns).to_pylist()


def _first(units: Sequence[Path], deduplicate: bool) -> tuple[np.ndarray, np.ndarray]:
    """For all documents and all sentences in input order: is it the first of its kind, bool."""
    documents, sentences = [], []
    for unit in units:
        table = pq.read_table(unit / PART_NAME, columns=["fingerprint", "fingerprints"])
        documents.append(table["fingerprint"].to_numpy())
        sentences.append(table["fingerprints"].combine_chunks().flatten().to_numpy(zero_copy_only=False))
    both = (np.concatenate(documents).astype(np.uint64), np.concatenate(sentences).astype(np.uint64))
    if not deduplicate:
        return np.ones(len(both[0]), bool), np.ones(len(both[1]), bool)
    return first_occurrences(both[0]), first_occurrences(both[1])
