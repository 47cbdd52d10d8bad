"""Counts per source of what was read, changed, dropped and kept: the columns of paper Tables 28 and 29, and reasons.

Counts are flat ("dropped_sentences.is_too_short") while they are summed, and nested in ``statistics.json``. For each
source, sentences_split = sentences + the sum of dropped_sentences. "share_with_pii" is the share of the kept sentences
that had personal data (1.2 % in the paper).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from corpus.pii.types import ALL_TYPES, PII_TYPES

KEPT = ("documents", "sentences", "words", "characters", "bytes", "sentences_with_pii")
READ = ("documents_read", "characters_read", "sentences_split")
REASONS = ("changed", "dropped_documents", "dropped_sentences", "dropped_characters")
HAS_PII = "has_personal_data"  # the reason of sentences that mode drop drops
MAX_SOURCES, OTHER_SOURCES = 1_000, "other sources"
HISTOGRAMS = ("chars_per_sentence", "sentences_per_document")
"""Counts of sentences and documents by the largest power of two up to their length: 1, 2, 4 …"""


class SourceCounts(dict[str, Counter[str]]):
    def __missing__(self, source: str) -> Counter[str]:
        self[source] = Counter()
        return self[source]

    def drop(self, source: str, rule: str, sentences: Sequence[str]) -> None:
        """Count sentences that a rule drops, and their characters."""
        self[source][f"dropped_sentences.{rule}"] += len(sentences)
        self[source][f"dropped_characters.{rule}"] += sum(map(len, sentences))

    def add(self, other: Mapping[str, Mapping[str, int]]) -> None:
        for source, counts in other.items():
            self[source].update(counts)

    def group_rare(self) -> frozenset[str]:
        """Above ``MAX_SOURCES``, count those with a smaller share of the documents as one; returns the others."""
        total = sum(counts["documents_read"] for counts in self.values())
        rare = [name for name, counts in self.items() if counts["documents_read"] * MAX_SOURCES < total]
        for name in {*rare} - {OTHER_SOURCES} if len(self) > MAX_SOURCES else ():
            self[OTHER_SOURCES].update(self.pop(name))
        return frozenset(self)


def summarize(tally: SourceCounts, records: Counter[str]) -> dict[str, Any]:
    """The content of statistics.json: "total", "sources" by name, and "records"."""
    total = sum(tally.values(), Counter[str]())
    sources = {source: _nest(tally[source]) for source in sorted(tally)}
    read = {"read": records["records"], "empty": records["empty"]}
    read_groups = {group: counts_in_group(records, group) for group in ("skipped", "rejected")}
    return {"total": _nest(total), "sources": sources, "records": read | read_groups}


def _nest(counts: Counter[str]) -> dict[str, Any]:
    nested: dict[str, Any] = {name: counts[name] for name in READ + KEPT}
    nested |= {group: counts_in_group(counts, group) for group in REASONS}
    for group in HISTOGRAMS:
        nested[group] = dict(sorted(counts_in_group(counts, group).items(), key=lambda item: int(item[0])))
    nested["pii"] = {n: counts[f"pii.{n}"] for n in ALL_TYPES if n in PII_TYPES or counts[f"pii.{n}"]}
    nested["share_with_pii"] = counts["sentences_with_pii"] / counts["sentences"] if counts["sentences"] else 0.0
    return nested


def counts_in_group(counts: Mapping[str, int], group: str) -> dict[str, int]:
    """The counts whose names start with ``group.``, by the rest of their names."""
    return {key.removeprefix(f"{group}."): n for key, n in sorted(counts.items()) if key.startswith(f"{group}.")}
