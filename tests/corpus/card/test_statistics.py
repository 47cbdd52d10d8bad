"""Nested counts: the paper's types of personal data always, further types only if they occur."""

from __future__ import annotations

from collections import Counter

from corpus.card.statistics import SourceCounts, summarize
from corpus.pii.types import PII_TYPES


def test_further_types_of_personal_data_are_listed_if_they_occur() -> None:
    counts = SourceCounts(a=Counter({"pii.TEL": 2}), b=Counter({"pii.HANDLE": 1}))
    summary = summarize(counts, Counter())
    assert summary["sources"]["a"]["pii"] == dict.fromkeys(PII_TYPES, 0) | {"TEL": 2}
    assert summary["total"]["pii"] == dict.fromkeys(PII_TYPES, 0) | {"TEL": 2, "HANDLE": 1}
