"""First pass, one unit of work at a time: raw records to cleaned, decontaminated, pseudonymized sentences.

```
record ─ noise ─▶ text ─ split ─▶ sentences ─ limits ─▶ ─ benchmark sentences out ─▶ ─ personal data replaced ─▶ part
```
Fingerprints for the second pass are taken before replacement, so that duplicates are judged by the original text.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from corpus.config import CorpusConfig
from corpus.decontaminate import ContaminationIndex, Hit
from corpus.deduplicate import fingerprint
from corpus.documents import SCHEMA
from corpus.noise import SentenceLimits, failed_rule, remove_noise
from corpus.pii.detect import find_pii, find_pii_in_sentences
from corpus.pii.replace import Pseudonymizer
from corpus.pii.types import PII_TYPES
from corpus.quarantine import quarantine_line
from corpus.read import Record, Reject, Unit, read_unit
from corpus.samples import Samples, write_samples
from corpus.sentences import split_sentences
from corpus.statistics import Tally

PART_SCHEMA = pa.schema(
    [
        *SCHEMA,
        ("fingerprint", pa.uint64()),  # of the document
        ("fingerprints", pa.list_(pa.uint64())),  # of its sentences, 0 where they may repeat
        ("pii", pa.list_(pa.int32())),  # sentence number * 16 + type number, for each replaced value
    ]
)
PART_NAME = "documents.parquet"
SAMPLES_NAME = "dropped.parquet"
QUARANTINE_NAME = "quarantine.jsonl"
ITEMS_NAME = "items.json"
IN_BENCHMARK = "in_benchmark"
BATCH_CHARS = 200_000


class Draft(NamedTuple):
    record: Record
    sentences: list[str]


def clean_unit(unit: Unit, scratch: Path, *, config: CorpusConfig, index_folder: Path | None) -> dict[str, Any]:
    """Write the unit's part, samples and quarantine into ``scratch``; returns counts, summed over units later."""
    cleaner = _Cleaner(config, index_folder)
    lines: Counter[str] = Counter()
    rejected: Counter[str] = Counter()
    with (
        (scratch / QUARANTINE_NAME).open("w", encoding="utf-8") as quarantine,
        pq.ParquetWriter(scratch / PART_NAME, PART_SCHEMA, compression="zstd") as writer,
    ):
        batch: list[Draft] = []
        size = 0
        for found in read_unit(unit, config.text_field, lines, config.max_documents_per_file):
            if isinstance(found, Reject):
                rejected[found.reason] += 1
                quarantine.write(quarantine_line(unit.name, found))
                continue
            batch.append(cleaner.draft(found))
            size += len(found.text)
            if size >= BATCH_CHARS:
                writer.write_table(cleaner.finish(batch))
                batch, size = [], 0
        writer.write_table(cleaner.finish(batch))
    hidden = [sample._replace(text=cleaner.hide(sample.text, sample.document)) for sample in cleaner.samples]
    write_samples(scratch / SAMPLES_NAME, hidden, with_order=True)
    return {"sources": cleaner.tally, "lines": lines, "rejected": rejected, "found": cleaner.found}


@lru_cache(maxsize=1)
def _load_index(folder: Path) -> tuple[ContaminationIndex, list[list[tuple[str, str]]]]:
    return ContaminationIndex.load(folder), json.loads((folder / ITEMS_NAME).read_text("utf-8"))


class _Cleaner:
    """The rules of one run and the counts of one unit."""

    def __init__(self, config: CorpusConfig, index_folder: Path | None) -> None:
        self.config = config
        self.index: ContaminationIndex | None = None
        self.items: list[list[tuple[str, str]]] = []
        if index_folder:
            self.index, self.items = _load_index(index_folder)
        self.tally = Tally()
        self.found: Counter[int] = Counter()
        self.samples = Samples(config.samples_per_rule, config.seed)

    def draft(self, record: Record) -> Draft:
        """Noise out, sentences apart, limits applied; an id that holds personal data gives way to file and line."""
        if self.config.pseudonymize and find_pii(record.id):
            record = record._replace(id=record.place)
        counts = self.tally[record.source]
        counts["documents_read"] += 1
        counts["characters_read"] += len(record.text)
        changed: Counter[str] = Counter()
        sentences = split_sentences(remove_noise(record.text, changed))
        counts.update({f"changed.{rule}": times for rule, times in changed.items()})
        counts["sentences_split"] += len(sentences)
        min_chars = self.config.min_sentence_chars.get(record.source, self.config.min_chars)
        limits = SentenceLimits(min_chars, self.config.max_han_kana)
        kept = []
        for sentence in sentences:
            if rule := failed_rule(sentence, limits):
                self._drop(record, sentence, rule)
            else:
                kept.append(sentence)
        return Draft(record, kept)

    def finish(self, batch: list[Draft]) -> pa.Table:
        """Benchmark sentences out, personal data replaced; documents with nothing left are dropped."""
        if self.index:
            batch = self._decontaminate(self.index, batch)
        rows = []
        for record, sentences in batch:
            if sentences:
                rows.append(self._row(record, sentences))
            else:
                self.tally[record.source]["dropped_documents.no_sentence_left"] += 1
        return pa.Table.from_pylist(rows, schema=PART_SCHEMA)

    def hide(self, text: str, document: str) -> str:
        """``text`` without personal data, unless the run keeps it."""
        spans = find_pii(text) if self.config.pseudonymize else []
        return Pseudonymizer(self.config.seed, document).replace(text, spans) if spans else text

    def _drop(self, record: Record, sentence: str, rule: str) -> None:
        self.tally[record.source][f"dropped_sentences.{rule}"] += 1
        self.samples.add(rule, record.source, record.id, sentence)

    def _decontaminate(self, index: ContaminationIndex, batch: list[Draft]) -> list[Draft]:
        hits: dict[int, list[Hit]] = {}
        for hit in index.find([sentence for draft in batch for sentence in draft.sentences]):
            hits.setdefault(hit.sentence, []).append(hit)
        number = iter(range(sum(len(draft.sentences) for draft in batch)))
        return [Draft(draft.record, list(self._clean_sentences(draft, number, hits))) for draft in batch]

    def _clean_sentences(self, draft: Draft, number: Iterator[int], hits: dict[int, list[Hit]]) -> Iterator[str]:
        for sentence, n in zip(draft.sentences, number, strict=False):
            if n not in hits:
                yield sentence
                continue
            self.tally[draft.record.source][f"dropped_sentences.{IN_BENCHMARK}"] += 1
            tasks: dict[str, str] = {}
            for hit in sorted(hits[n], key=lambda hit: (-hit.ratio, hit.item)):
                self.found[hit.item] += 1
                for task, key in self.items[hit.item]:
                    tasks.setdefault(task, f"{key} {hit.ratio:.3f}")
            for task, note in tasks.items():
                self.tally[draft.record.source][f"{IN_BENCHMARK}.{task}"] += 1
                self.samples.add(f"{IN_BENCHMARK}:{task}", draft.record.source, draft.record.id, sentence, note)

    def _row(self, record: Record, sentences: list[str]) -> dict[str, Any]:
        prints = [fingerprint(sentence) for sentence in sentences]
        least = self.config.deduplicate_min_chars
        row: dict[str, Any] = {
            "id": record.id,
            "source": record.source,
            "fingerprint": fingerprint(" ".join(map(str, prints))),
            "fingerprints": [p if len(s) >= least else 0 for s, p in zip(sentences, prints, strict=True)],
        }
        pii: list[int] = []
        if self.config.pseudonymize:
            pseudonymizer = Pseudonymizer(self.config.seed, record.id)
            spans = find_pii_in_sentences(sentences)
            pii = [n * len(PII_TYPES) + PII_TYPES.index(span.type) for n, found in enumerate(spans) for span in found]
            sentences = [
                pseudonymizer.replace(s, found) if found else s for s, found in zip(sentences, spans, strict=True)
            ]
        return row | {"sentences": sentences, "pii": pii}
