"""Finding benchmark sentences in a corpus: our index against rank_bm25, same benchmark sentences, same queries.

rank_bm25 weighs every benchmark sentence for every query, so it gets a handful of queries, cut into tokens beforehand,
and at most ``LIMIT`` benchmark sentences; its time grows at least with their number. Where both answer, the decisions
are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from launch.bench.rounds import spread, time_in_turns

LIMIT = 12_000
QUERY_MEGABYTES = 3.0
BRUTE_QUERIES = 24
COMPARED_QUERIES = 40
BATCH_CHARS = 200_000


def bench_decontamination(documents: list[str], benchmarks: list[Path]) -> dict[str, Any]:
    """Sentences a second: both with at most ``LIMIT`` benchmark sentences, ours with all; and their decisions."""
    from corpus.config import DecontaminateConfig
    from corpus.decontamination.benchmarks import read_benchmarks
    from corpus.folding import fold
    from corpus.sentences.split import split_sentences

    config = DecontaminateConfig(min_item_words=1)  # folded below, so that each is one word
    folded = dict.fromkeys(fold(text.text) for text in read_benchmarks(benchmarks))
    items = [text for text in folded if len(text) >= config.min_chars]
    few = _spread(items, LIMIT)
    queries = [sentence for text in spread(documents, QUERY_MEGABYTES) for sentence in split_sentences(text)]
    result = _race(few, queries, config)
    if len(items) > len(few):
        result["ours_all"] = _ours_alone(items, queries, config)
    return result | {"benchmark_sentences": len(items), "queries": len(queries)}


def _race(items: list[str], queries: list[str], config: Any) -> dict[str, Any]:
    """Both with the same ``items`` (folded); speeds and agreement."""
    from rank_bm25 import BM25Okapi

    from corpus.decontamination.index import build_index
    from corpus.folding import fold

    index, numbers = build_index(items, config)
    brute = BM25Okapi([_tokens(item, config.ngram) for item in items])
    few = _spread([query for query in queries if len(fold(query)) >= config.min_chars], BRUTE_QUERIES)
    asked = [list(dict.fromkeys(_tokens(fold(query), config.ngram))) for query in few]
    batches = _batches(queries)
    seconds = time_in_turns(
        {
            "ours": lambda: [index.find(batch) for batch in batches],
            "rank_bm25": lambda: [brute.get_scores(tokens) for tokens in asked],
        }
    )
    ours, theirs = len(queries) / seconds["ours"], len(asked) / seconds["rank_bm25"]
    return {
        "items": len(items),
        "ours_per_s": ours,
        "rank_bm25_per_s": theirs,
        "rank_bm25_queries": len(asked),
        "times_faster": ours / theirs,
        **_compare(index, brute, items, numbers, queries, config),
    }


def _ours_alone(items: list[str], queries: list[str], config: Any) -> dict[str, Any]:
    from corpus.decontamination.index import build_index

    index, _ = build_index(items, config)
    batches = _batches(queries)
    seconds = time_in_turns({"ours": lambda: [index.find(batch) for batch in batches]})
    return {"items": len(items), "ours_per_s": len(queries) / seconds["ours"]}


def _compare(
    index: Any, brute: Any, items: list[str], numbers: list[int], queries: list[str], config: Any
) -> dict[str, int]:
    """Decisions on corpus sentences and on benchmark sentences with one word less, pair by pair.

    Only pairs whose window holds the whole query: rank_bm25 knows no windows.
    """
    from corpus.folding import fold

    half = COMPARED_QUERIES // 2
    asked = [fold(query) for query in _spread(queries, half)]
    asked += [item[: len(item) // 2] + item[len(item) // 2 + 2 :] for item in _spread(items, half)]
    own = np.array([_self_score(brute, number) for number in range(len(items))])
    windows = np.array([np.ceil((len(item) - config.ngram + 1) * config.window) for item in items])
    hits: list[set[int]] = [set() for _ in asked]
    place = {number: at for at, number in enumerate(numbers)}
    for hit in index.find(asked):
        hits[hit.sentence].add(place[hit.item])
    differing = positive = compared = 0
    for query, found in zip(asked, hits, strict=True):
        tokens = _tokens(query, config.ngram)
        within = len(tokens) <= windows
        expected = set(
            np.flatnonzero(within & (brute.get_scores(list(dict.fromkeys(tokens))) >= (config.threshold - 1e-9) * own))
        )
        differing += len(expected ^ {item for item in found if within[item]})
        positive += len(expected)
        compared += int(within.sum())
    return {"pairs_compared": compared, "pairs_positive": positive, "pairs_that_differ": differing}


def _self_score(brute: Any, number: int) -> float:
    """BM25(d, d) over distinct tokens, from the fields of BM25Okapi."""
    norm = brute.k1 * (1 - brute.b + brute.b * brute.doc_len[number] / brute.avgdl)
    counts = brute.doc_freqs[number].items()
    return float(sum(brute.idf[token] * n * (brute.k1 + 1) / (n + norm) for token, n in counts))


def _tokens(text: str, ngram: int) -> list[str]:
    return [text[at : at + ngram] for at in range(len(text) - ngram + 1)]


def _spread(texts: Sequence[str], limit: int) -> list[str]:
    """At most ``limit`` of the texts, evenly over the list."""
    if len(texts) <= limit:
        return list(texts)
    return [texts[number * len(texts) // limit] for number in range(limit)]


def _batches(queries: list[str]) -> list[list[str]]:
    """As the stage does it: sentences of about ``BATCH_CHARS`` characters at a time."""
    batches: list[list[str]] = [[]]
    size = 0
    for query in queries:
        batches[-1].append(query)
        size += len(query)
        if size >= BATCH_CHARS:
            batches.append([])
            size = 0
    return [batch for batch in batches if batch]
