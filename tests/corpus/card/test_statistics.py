"""Nested counts: the paper's types of personal data always, further types only if they occur."""

from __future__ import annotations

from collections import Counter

import pytest

from corpus.card import statistics
from corpus.card.statistics import HISTOGRAMS, OTHER_SOURCES, SourceCounts, summarize
from corpus.pii.types import PII_TYPES


def test_further_types_of_personal_data_are_listed_if_they_occur() -> None:
    counts = SourceCounts(a=Counter({"pii.TEL": 2}), b=Counter({"pii.PERSON": 1}))
    summary = summarize(counts, Counter())
    assert summary["sources"]["a"]["pii"] == dict.fromkeys(PII_TYPES, 0) | {"TEL": 2}
    assert summary["total"]["pii"] == dict.fromkeys(PII_TYPES, 0) | {"TEL": 2, "PERSON": 1}


@pytest.mark.parametrize(("sentences", "hits", "share"), [(8, 2, 0.25), (1, 1, 1.0), (0, 0, 0.0)])
def test_the_share_of_sentences_with_personal_data(sentences: int, hits: int, share: float) -> None:
    counts = SourceCounts(a=Counter({"sentences": sentences, "sentences_with_pii": hits}))
    summary = summarize(counts, Counter())
    assert summary["total"]["share_with_pii"] == summary["sources"]["a"]["share_with_pii"] == share


def test_lengths_are_in_the_order_of_numbers_and_records_are_those_of_the_files() -> None:
    lengths = {f"{group}.{n}": n for group in HISTOGRAMS for n in (100, 9, 20)}
    summary = summarize(SourceCounts(a=Counter(lengths)), Counter({"records": 7, "empty": 2, "skipped.x": 1}))
    for group in HISTOGRAMS:
        assert list(summary["total"][group]) == ["9", "20", "100"]
    assert summary["records"] == {"read": 7, "empty": 2, "skipped": {"x": 1}, "rejected": {}}


@pytest.mark.parametrize("documents", [[5, 4, 1], [5, 4, 2, 1], [5, 1, 1, 1], [1] * 9])
def test_rare_ones_of_many_sources_count_as_one(documents: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "MAX_SOURCES", 3)
    names = [*map(str, range(len(documents) - 1)), OTHER_SOURCES]
    counts = SourceCounts((name, Counter(documents_read=n, pii=1)) for name, n in zip(names, documents, strict=True))
    kept = counts.group_rare()
    frequent = {name for name, n in zip(names, documents, strict=True) if 3 * n >= sum(documents)}
    assert kept == counts.keys() == (frequent | {OTHER_SOURCES} if len(documents) > 3 else set(names))
    assert sum(counts.values(), Counter()) == Counter(documents_read=sum(documents), pii=len(documents))
