"""First pass, one unit of work at a time: raw records to cleaned, decontaminated, pseudonymized sentences.

```
record ─ repair mojibake, remove noise, rejoin wrapped lines ─ split sentences ─ quality rules
       ─ drop benchmark sentences ─ hide personal data ─▶ unit files
```
Fingerprints for deduplication are computed before personal data is replaced, so duplicates are found by original text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from functools import lru_cache
from itertools import accumulate, count, groupby, islice
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from corpus.card.samples import UnitSamples
from corpus.card.statistics import HAS_PII, SourceCounts
from corpus.config import CorpusConfig
from corpus.decontamination.index import ContaminationIndex, Hit
from corpus.decontamination.report import IN_BENCHMARK, BenchmarkItems
from corpus.noise.remove import remove_noise, rules_except
from corpus.pii.hide import HiddenDocument, load_document_hider
from corpus.pii.types import ALL_TYPES
from corpus.quality.boilerplate import BOILERPLATE
from corpus.quality.han_kana import has_many_han_or_kana, has_too_many_han_or_kana
from corpus.quality.length import is_too_short, min_sentence_chars
from corpus.quality.mojibake import repair_mojibake
from corpus.quality.rules import failed_by_documents, failed_by_sentences
from corpus.reading.inputs import Unit
from corpus.reading.read import Record, RejectedRecord, quarantine_line, read_unit
from corpus.sentences.split import split_sentences
from corpus.sentences.wrapping import rejoin_lines
from corpus.unit_files import CleanedDocument, UnitWriter

QUARANTINE_NAME = "quarantine.jsonl"
REJOINED, MOJIBAKE = "wrapped_line", "mojibake"
BATCH_CHARS = 200_000
DIGIT, MIN_VALUE_DIGITS = re.compile("[0-9]"), 9
SAMPLE_CHARS = 1_000


class Draft(NamedTuple):
    """A document whose personal data is not hidden yet; ``text`` is without noise."""

    record: Record
    sentences: list[str]
    text: str


def clean_unit(
    unit: Unit, scratch: Path, *, config: CorpusConfig, index_folder: Path | None, private: Path
) -> dict[str, Any]:
    """Write documents, fingerprints, samples and quarantine of a unit into ``scratch``; returns its counts.

    ``private`` is the folder with the secret of the run.
    """
    cleaner = _Cleaner(config, index_folder, private)
    file = cleaner.hider.hide_in_file_name(unit.input.name)
    counts: Counter[str] = Counter()
    with (
        (scratch / QUARANTINE_NAME).open("w", encoding="utf-8") as quarantine,
        closing(UnitWriter(scratch, config)) as writer,
    ):
        batch: list[Draft] = []
        size = 0
        for record in read_unit(unit, counts, config.max_documents_per_file):
            if isinstance(record, RejectedRecord):
                counts[f"rejected.{record.reason}"] += 1
                quarantine.write(quarantine_line(file, record))
                continue
            batch.append(cleaner.draft(record))
            size += len(record.text)
            if size >= BATCH_CHARS:
                writer.write(cleaner.finish(batch))
                batch, size = [], 0
        writer.write(cleaner.finish(batch))
    cleaner.samples.write(scratch)
    cleaner.hider.write_originals(scratch)
    return {"input": unit.input.name, "sources": cleaner.counts, "records": counts, "found": cleaner.hits}


def _failed_rule(sentence: str, min_chars: int, count_glosses: bool) -> str | None:
    if is_too_short(sentence, min_chars):
        return is_too_short.__name__
    return has_too_many_han_or_kana.__name__ if has_too_many_han_or_kana(sentence, count_glosses) else None


@lru_cache(maxsize=1)
def _load_index(folder: Path | None) -> tuple[ContaminationIndex, BenchmarkItems] | None:
    return (ContaminationIndex.load(folder), BenchmarkItems(folder)) if folder else None


class _Cleaner:
    """The rules of one run and the counts of one unit."""

    def __init__(self, config: CorpusConfig, index_folder: Path | None, private: Path) -> None:
        self.config = config
        self.index = _load_index(index_folder)
        self.hider = load_document_hider(config, private)
        self.counts = SourceCounts()
        self.hits: Counter[int] = Counter()
        self.samples = UnitSamples(config.seed, self.hider)

    def draft(self, record: Record) -> Draft:
        """Hide personal data in its names, remove noise, split sentences, apply the quality rules."""
        place, id_, source = self.hider.hide_names(record.place, record.id, record.source)
        if self.config.pii.mode != "keep" and len(DIGIT.findall(id_)) >= MIN_VALUE_DIGITS and id_ in record.text:
            id_ = place  # it may be a value that only words of the text announce
        record = record._replace(place=place, id=id_, source=source)
        counts = self.counts[source]
        text = self._without_noise(record)
        sentences = split_sentences(text)
        counts.update(documents_read=1, characters_read=len(record.text), sentences_split=len(sentences))
        draft = Draft(record, sentences, text)
        min_chars = min_sentence_chars(source, self.config.min_sentence_chars)
        if min_chars <= 1 and not has_many_han_or_kana(text):
            return draft  # then no sentence has too many either
        return self._without_sentences(
            draft, (_failed_rule(sentence, min_chars, self.config.count_glosses) for sentence in sentences)
        )

    def _without_sentences(self, draft: Draft, failed: Iterable[str | None]) -> Draft:
        """The document without the sentences that fail a rule, given for each sentence."""
        sentences = []
        for before, sentence, rule in zip(["", *draft.sentences], draft.sentences, failed, strict=False):
            if rule:
                self.counts.drop(draft.record.source, rule, [sentence])
                self.samples.drop(rule, draft.record, sentence, before)
            else:
                sentences.append(sentence)
        return draft._replace(sentences=sentences)

    def finish(self, batch: list[Draft]) -> list[CleanedDocument]:
        """Drop benchmark sentences, hide personal data, and drop documents without a remaining sentence."""
        if batch and self.config.quality.enabled:
            batch = self._apply_quality_rules(batch)
        if self.index:
            batch = self._decontaminate(*self.index, batch)
        hidden = self.hider.hide([(draft.record.id, draft.sentences) for draft in batch])
        documents = [self._collect(draft, document) for draft, document in zip(batch, hidden, strict=True)]
        empty = Counter(document.record.source for document in documents if not document.sentences)
        self.counts.add({source: {"dropped_documents.no_sentence_left": n} for source, n in empty.items()})
        return [document for document in documents if document.sentences]

    def _apply_quality_rules(self, batch: list[Draft]) -> list[Draft]:
        """Drop documents that fail a quality rule, then such sentences."""
        off = [self.config.quality.rules_off.get(draft.record.source, ()) for draft in batch]
        rules = failed_by_documents([draft.text for draft in batch], [draft.sentences for draft in batch], off)
        drafts, off_of_sentences = [], []
        for draft, rule, names in zip(batch, rules, off, strict=True):
            if rule:
                self.counts[draft.record.source][f"dropped_documents.{rule}"] += 1
                self.counts.drop(draft.record.source, rule, draft.sentences)
                ends = accumulate(map(len, draft.sentences))
                shown = [text for text, end in zip(draft.sentences, ends, strict=True) if end <= SAMPLE_CHARS]
                self.samples.drop(rule, draft.record, "\n".join(shown or draft.sentences[:1]))
            else:
                drafts.append(draft)
                off_of_sentences += [names] * len(draft.sentences)
        failed = iter(failed_by_sentences([text for draft in drafts for text in draft.sentences], off_of_sentences))
        return [self._without_sentences(draft, islice(failed, len(draft.sentences))) for draft in drafts]

    def _without_noise(self, record: Record) -> str:
        def observe(rule: str, before: str, after: str) -> None:
            self.samples.change(rule, record, before, after)

        changed: Counter[str] = Counter()
        rules = rules_except(tuple(self.config.noise_rules_off.get(record.source, ())), self.config.keep_hashtag_words)
        text = record.text
        if self.config.quality.enabled:
            text, changed[MOJIBAKE] = repair_mojibake(text)
            if changed[MOJIBAKE]:
                observe(MOJIBAKE, record.text, text)
        text = remove_noise(text, changed, observe, rules)
        if self.config.rejoin_lines:
            wrapped, (text, changed[REJOINED]) = text, rejoin_lines(text)
            if changed[REJOINED]:
                observe(REJOINED, wrapped, text)
        self.counts[record.source].update({f"changed.{rule}": times for rule, times in changed.items() if times})
        return text

    def _decontaminate(self, index: ContaminationIndex, items: BenchmarkItems, batch: list[Draft]) -> list[Draft]:
        all_hits = index.find_in_documents([draft.sentences for draft in batch])
        hits = {sentence: list(of_sentence) for sentence, of_sentence in groupby(all_hits, attrgetter("sentence"))}
        numbers, clean = count(), []
        for draft in batch if hits else ():
            record, sentences, remaining = draft.record, draft.sentences, []
            for before, sentence in zip(["", *sentences], sentences, strict=False):
                if of_sentence := hits.get(next(numbers)):
                    self._count_hits(items, record, sentence, before, of_sentence)
                else:
                    remaining.append(sentence)
            clean.append(draft._replace(sentences=remaining))
        return clean or batch

    def _count_hits(self, items: BenchmarkItems, record: Record, sentence: str, before: str, hits: list[Hit]) -> None:
        counts = self.counts[record.source]
        self.counts.drop(record.source, IN_BENCHMARK, [sentence])
        tasks: dict[str, str] = {}
        for hit in sorted(hits, key=lambda hit: (-hit.ratio, hit.item)):
            self.hits[hit.item] += 1
            for task, key in items[hit.item]:
                tasks.setdefault(task, f"{key} {hit.ratio:.3f}")
        for task, note in tasks.items():
            counts[f"{IN_BENCHMARK}.{task}"] += 1
            self.samples.drop(f"{IN_BENCHMARK}:{task}", record, sentence, before, note)

    def _collect(self, draft: Draft, hidden: HiddenDocument) -> CleanedDocument:
        """The document as it is written, counted and sampled."""
        record, sentences = draft.record, draft.sentences
        if any(hidden.spans):
            self.samples.hide(record, sentences, hidden)
        numbered = [(n, text) for n, text in enumerate(hidden.sentences) if text is not None]
        if len(sentences) > len(numbered):
            dropped = [text for text, left in zip(sentences, hidden.sentences, strict=True) if left is None]
            self.counts.drop(record.source, HAS_PII, dropped)
        pii = [
            place * len(ALL_TYPES) + ALL_TYPES.index(span.type)
            for place, (n, _) in enumerate(numbered)
            for span in hidden.spans[n]
        ]
        originals, texts = [sentences[n] for n, _ in numbered], [text for _, text in numbered]
        rules = self.config.quality
        has_lines = rules.enabled and BOILERPLATE not in rules.rules_off.get(record.source, ())
        lines = frozenset(draft.text.split("\n")) if has_lines else ()
        return CleanedDocument(record, originals, texts, pii, hidden.replacements, hidden.digest, lines)
