"""Statistics of distinct eojeols with their counts."""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import Tokenizer

from tokenizer.measuring.statistics import TokenizerStatistics, add_up, summarize


def measure_counts(tokenizer: Tokenizer, counts: Iterable[tuple[str, int]]) -> TokenizerStatistics:
    return summarize(tokenizer, add_up(tokenizer, ((eojeol, (count,)) for eojeol, count in counts)))
