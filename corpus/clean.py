"""First pass, one unit of work at a time: raw records to cleaned, decontaminated, pseudonymized sentences.

```
record ─ noise, wrapped lines joined ─▶ text ─ split ─▶ sentences ─ limits ─▶ ─ benchmark sentences out ─▶
       ─ personal data replaced ─▶ part
```
Fingerprints for the second pass are taken before replacement, so that duplicates are judged by the original text.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from functools import lru_cache
from itertools import count, groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from corpus.audit import load_guard
from corpus.card.samples import UnitSamples
from corpus.card.statistics import Tally
from corpus.config import CorpusConfig
from corpus.decontamination.index import ContaminationIndex, Hit
from corpus.decontamination.report import IN_BENCHMARK, Items
from corpus.drops import HAS_PII
from corpus.noise.remove import remove_noise, rules_without
from corpus.pii.types import ALL_TYPES
from corpus.quality.han_kana import has_many_han_or_kana, has_too_many_han_or_kana
from corpus.quality.length import is_too_short, min_sentence_chars
from corpus.reading.read import Record, Reject, quarantine_line, read_unit
from corpus.reading.units import Unit
from corpus.sentences.splitters import load_splitter
from corpus.sentences.wrapping import rejoin_lines
from corpus.unit_files import PartWriter, Row

QUARANTINE_NAME = "quarantine.jsonl"
REJOINED = "wrapped_line"
BATCH_CHARS = 200_000


class Draft(NamedTuple):
    record: Record
    sentences: list[str]


def clean_unit(
    unit: Unit, scratch: Path, *, config: CorpusConfig, index_folder: Path | None, private: Path
) -> dict[str, Any]:
    """Write the unit's part, fingerprints, samples and quarantine into ``scratch``; returns counts, summed later.

    ``private`` is the run's own folder, which holds its secret.
    """
    cleaner = _Cleaner(config, index_folder, private)
    file = cleaner.guard.public_file(unit.input.name) if cleaner.guard else unit.input.name
    counts: Counter[str] = Counter()
    with (
        (scratch / QUARANTINE_NAME).open("w", encoding="utf-8") as quarantine,
        closing(PartWriter(scratch, config.deduplicate)) as part,
    ):
        batch: list[Draft] = []
        size = 0
        for found in read_unit(unit, counts, config.max_documents_per_file):
            if isinstance(found, Reject):
                counts[f"rejected.{found.reason}"] += 1
                quarantine.write(quarantine_line(file, found))
                continue
            batch.append(cleaner.draft(found))
            size += len(found.text)
            if size >= BATCH_CHARS:
                part.write(cleaner.finish(batch))
                batch, size = [], 0
        part.write(cleaner.finish(batch))
    cleaner.shown.write(scratch)
    if cleaner.guard:
        cleaner.guard.write(scratch)
    return {"input": unit.input.name, "sources": cleaner.tally, "records": counts, "found": cleaner.found}


def _failed_rule(sentence: str, min_chars: int, count_glosses: bool) -> str | None:
    """The name of the rule that drops the sentence, or None."""
    if is_too_short(sentence, min_chars):
        return is_too_short.__name__
    return has_too_many_han_or_kana.__name__ if has_too_many_han_or_kana(sentence, count_glosses) else None


@lru_cache(maxsize=1)
def _load_index(folder: Path | None) -> tuple[ContaminationIndex, Items] | None:
    return (ContaminationIndex.load(folder), Items(folder)) if folder else None


class _Cleaner:
    """The rules of one run and the counts of one unit."""

    def __init__(self, config: CorpusConfig, index_folder: Path | None, private: Path) -> None:
        self.config = config
        self.index = _load_index(index_folder)
        self.split = load_splitter(config.splitter)
        self.guard = load_guard(config, private)
        self.tally = Tally()
        self.found: Counter[int] = Counter()
        self.shown = UnitSamples(config.seed, self.guard)

    def draft(self, record: Record) -> Draft:
        """Noise out, sentences apart, limits applied; names that hold personal data give way to public ones."""
        if self.guard:
            place = self.guard.public_place(record.place)
            id_ = place if record.id == record.place or self.guard.has_data(record.id) else record.id
            record = record._replace(place=place, id=id_, source=self.guard.public_source(record.source))
        counts = self.tally[record.source]
        text = self._without_noise(record)
        sentences = self.split(text)
        counts.update(documents_read=1, characters_read=len(record.text), sentences_split=len(sentences))
        min_chars = min_sentence_chars(record.source, self.config.min_sentence_chars)
        if min_chars <= 1 and not has_many_han_or_kana(text):
            return Draft(record, sentences)  # then no sentence has too many either
        kept = []
        for before, sentence in zip(["", *sentences], sentences, strict=False):
            if rule := _failed_rule(sentence, min_chars, self.config.count_glosses):
                counts[f"dropped_sentences.{rule}"] += 1
                self.shown.drop(rule, record, sentence, before)
            else:
                kept.append(sentence)
        return Draft(record, kept)

    def finish(self, batch: list[Draft]) -> list[Row]:
        """Benchmark sentences out, personal data replaced; documents with nothing left are dropped."""
        if self.index:
            batch = self._decontaminate(*self.index, batch)
        if self.guard and self.guard.protection.people:
            self.guard.protection.people.prepare(text for draft in batch for text in draft.sentences)
        rows = [self._protect(*draft) for draft in batch]
        empty = Counter(row.record.source for row in rows if not row.sentences)
        self.tally.add({source: {"dropped_documents.no_sentence_left": times} for source, times in empty.items()})
        return [row for row in rows if row.sentences]

    def _without_noise(self, record: Record) -> str:
        def observe(rule: str, before: str, after: str) -> None:
            self.shown.change(rule, record, before, after)

        changed: Counter[str] = Counter()
        rules = rules_without(tuple(self.config.noise_rules_off.get(record.source, ())))
        text = remove_noise(record.text, changed, observe, rules)
        if self.config.rejoin_lines:
            wrapped, (text, changed[REJOINED]) = text, rejoin_lines(text)
            if changed[REJOINED]:
                observe(REJOINED, wrapped, text)
        self.tally[record.source].update({f"changed.{rule}": times for rule, times in changed.items() if times})
        return text

    def _decontaminate(self, index: ContaminationIndex, items: Items, batch: list[Draft]) -> list[Draft]:
        found = index.find_in_documents([draft.sentences for draft in batch])
        hits = {sentence: list(of_sentence) for sentence, of_sentence in groupby(found, attrgetter("sentence"))}
        numbers, clean = count(), []
        for record, sentences in batch if hits else ():
            kept = []
            for before, sentence in zip(["", *sentences], sentences, strict=False):
                if of_sentence := hits.get(next(numbers)):
                    self._count_hits(items, record, sentence, before, of_sentence)
                else:
                    kept.append(sentence)
            clean.append(Draft(record, kept))
        return clean or batch

    def _count_hits(self, items: Items, record: Record, sentence: str, before: str, hits: list[Hit]) -> None:
        counts = self.tally[record.source]
        counts[f"dropped_sentences.{IN_BENCHMARK}"] += 1
        tasks: dict[str, str] = {}
        for hit in sorted(hits, key=lambda hit: (-hit.ratio, hit.item)):
            self.found[hit.item] += 1
            for task, key in items[hit.item]:
                tasks.setdefault(task, f"{key} {hit.ratio:.3f}")
        for task, note in tasks.items():
            counts[f"{IN_BENCHMARK}.{task}"] += 1
            self.shown.drop(f"{IN_BENCHMARK}:{task}", record, sentence, before, note)

    def _protect(self, record: Record, sentences: list[str]) -> Row:
        """The document without personal data."""
        if not self.guard:
            return Row(record, sentences, sentences)
        protected = self.guard.hide(sentences, record.id)
        if not any(protected.spans):
            return Row(record, sentences, sentences, seal=self.guard.seal(sentences))
        self.shown.protect(record, sentences, protected)
        kept = [(n, text) for n, text in enumerate(protected.sentences) if text is not None]
        if dropped := len(sentences) - len(kept):
            self.tally[record.source][f"dropped_sentences.{HAS_PII}"] += dropped
        pii = [
            place * len(ALL_TYPES) + ALL_TYPES.index(span.type)
            for place, (n, _) in enumerate(kept)
            for span in protected.spans[n]
        ]
        marks = self.guard.marks(protected.sentences, protected.left)
        texts = [text for _, text in kept]
        return Row(record, [sentences[n] for n, _ in kept], texts, pii, marks, self.guard.seal(texts))
