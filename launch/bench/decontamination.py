"""Finding benchmark sentences in a corpus: our index against rank_bm25, same benchmark sentences, same queries.

rank_bm25 gets a handful of queries, cut into n-grams beforehand, and at most ``LIMIT`` benchmark sentences. Where both
answer, the decisions are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from launch.bench.material import spread
from launch.bench.rivals import BruteForce
from launch.bench.timing import time_in_turns
from launch.console import Table, figures

if TYPE_CHECKING:
    from corpus.config import DecontaminateConfig
    from corpus.decontamination.index import ContaminationIndex

LIMIT = 12_000
QUERY_MEGABYTES = 3.0
BRUTE_QUERIES = 24
COMPARED_QUERIES = 40
BATCH = 4_000  # sentences at a time, about as many as the stage looks for


def bench_decontamination(documents: list[str], benchmarks: list[Path]) -> dict[str, Any]:
    """Sentences a second: both with at most ``LIMIT`` benchmark sentences, ours with all; and their decisions."""
    from corpus.config import DecontaminateConfig
    from corpus.decontamination.benchmarks import read_benchmarks
    from corpus.decontamination.index import build_index
    from corpus.folding import fold
    from corpus.sentences.split import split_sentences

    config = DecontaminateConfig(min_item_words=1)  # folded below, so that each is one word
    folded = dict.fromkeys(fold(text.text) for text in read_benchmarks(benchmarks))
    items = [text for text in folded if len(text) >= config.min_chars]
    few = _spread(items, LIMIT)
    queries = [sentence for text in spread(documents, QUERY_MEGABYTES) for sentence in split_sentences(text)]
    batches = [queries[first : first + BATCH] for first in range(0, len(queries), BATCH)]

    (index, numbers), brute = build_index(few, config), BruteForce(few, config.ngram)
    long_enough = [text for query in queries if len(text := fold(query)) >= config.min_chars]
    asked = [list(dict.fromkeys(brute.cut(query))) for query in _spread(long_enough, BRUTE_QUERIES)]
    seconds = time_in_turns(
        {
            "ours": lambda: [index.find(batch) for batch in batches],
            "rank_bm25": lambda: [brute.scores(tokens) for tokens in asked],
        }
    )
    ours, theirs = len(queries) / seconds["ours"], len(asked) / seconds["rank_bm25"]
    result = {
        "items": len(few),
        "ours_per_s": ours,
        "rank_bm25_per_s": theirs,
        "rank_bm25_queries": len(asked),
        "times_faster": ours / theirs,
        "benchmark_sentences": len(items),
        "queries": len(queries),
        **_compare(index, brute, few, numbers, queries, config),
    }
    if len(items) > len(few):
        everything = build_index(items, config)[0]
        spent = time_in_turns({"ours": lambda: [everything.find(batch) for batch in batches]})["ours"]
        result["ours_all_per_s"] = len(queries) / spent
    return result


def _compare(
    index: ContaminationIndex,
    brute: BruteForce,
    items: list[str],
    numbers: list[int],
    queries: list[str],
    config: DecontaminateConfig,
) -> dict[str, int]:
    """Decisions on corpus sentences and on benchmark sentences with two letters less, pair by pair.

    Only pairs whose window holds the whole query: rank_bm25 knows no windows.
    """
    from corpus.folding import fold

    half = COMPARED_QUERIES // 2
    asked = [fold(query) for query in _spread(queries, half)]
    asked += [item[: len(item) // 2] + item[len(item) // 2 + 2 :] for item in _spread(items, half)]
    windows = np.array([np.ceil((len(item) - config.ngram + 1) * config.window) for item in items])
    hits: list[set[int]] = [set() for _ in asked]
    place = {number: at for at, number in enumerate(numbers)}
    for hit in index.find(asked):
        hits[hit.sentence].add(place[hit.item])
    differing = positive = compared = 0
    for query, found in zip(asked, hits, strict=True):
        within = len(brute.cut(query)) <= windows
        expected = set(np.flatnonzero(within & (brute.shares(query) >= config.threshold - 1e-9)))
        differing += len(expected ^ {item for item in found if within[item]})
        positive += len(expected)
        compared += int(within.sum())
    return {"pairs_compared": compared, "pairs_positive": positive, "pairs_that_differ": differing}


def decontamination_table(found: dict[str, Any], texts: str) -> Table:
    """Speeds and what was decided otherwise."""
    few, rows = f"{found['items']:,}", []
    rows.append(["ours", few, f"{found['ours_per_s']:,.0f}", f"{found['times_faster']:,.0f}"])
    rows.append(["rank_bm25", few, f"{found['rank_bm25_per_s']:,.1f}", "1"])
    if "ours_all_per_s" in found:
        rows.append(["ours", f"{found['benchmark_sentences']:,}", f"{found['ours_all_per_s']:,.0f}", ""])
    note = (
        f"{found['queries']:,} sentences of {texts} as queries (rank_bm25 {found['rank_bm25_queries']}); of "
        f"{found['pairs_compared']:,} pairs compared, {found['pairs_positive']} contaminated, "
        f"{found['pairs_that_differ']} decided otherwise"
    )
    return figures("Decontamination", ("way", "benchmark sentences", "sentences/s", "times"), rows, note)


def _spread(texts: Sequence[str], limit: int) -> list[str]:
    """At most ``limit`` of the texts, evenly over the list."""
    count = min(limit, len(texts))
    return [texts[number * len(texts) // count] for number in range(count)]
