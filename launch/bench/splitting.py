"""Sentence splitters side by side: how many gold sentences they find, and how fast they are.

White space is left out of all comparisons. A predicted sentence counts for the one gold sentence it overlaps best, so
that swallowing several finds one of them. Splitters that are a hundred times slower get a small part of the text, and
ours is timed on the same part beside them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, NamedTuple

from launch.bench.rounds import byte_count, spread, time_in_turns, version_of

Split = Callable[[str], list[str]]
PLAIN = re.compile(r"(?<=[.!?])\s")
FAST_MEGABYTES, SLOW_MEGABYTES = 5.0, 0.1
BEGINNING_CHARS = 2_000
RIVALS = {"kiwi": "kiwipiepy", "kss": "kss"}


class Scores(NamedTuple):
    """Means over the gold sentences, 0..1.

    Fields:
        em: found exactly.
        f1: best overlap F1, in characters, with a predicted sentence that overlaps no other one better.
        nf1: the same, times gold over predicted sentences of the document where it was cut into more.
        gold: gold sentences.
    """

    em: float
    f1: float
    nf1: float
    gold: int


def bench_splitting(documents: list[str], gold: list[list[str]]) -> dict[str, Any]:
    """Scores on ``gold`` and MB/s on ``documents`` of ours, the plain rule, and kiwi and kss where installed."""
    ours, slow, missing = _ours(), *_rivals()
    contenders = {"ours": ours, "[.!?] + blank": split_at_stops, **slow}
    rows: dict[str, Any] = {name: score_splits(gold, split)._asdict() for name, split in contenders.items()}
    fast = {name: split for name, split in contenders.items() if name not in slow}
    much = spread(documents, FAST_MEGABYTES)
    for name, speed in _speeds(fast, much).items():
        rows[name]["mb_per_s"] = speed
    few = _shorten(documents, SLOW_MEGABYTES)
    for name, split in slow.items():
        speeds = _speeds({"ours": ours, name: split}, few)
        rows[name] |= {"mb_per_s": speeds[name], "ours_times_faster": speeds["ours"] / speeds[name]}
    return {
        "rows": rows,
        "gold_sentences": sum(map(len, gold)),
        "timed_megabytes": byte_count(much) / 1e6,
        "timed_megabytes_slow": byte_count(few) / 1e6 if slow else None,
        "versions": {name: version_of(package) for name, package in RIVALS.items()},
        "missing": missing,
    }


def split_at_stops(text: str) -> list[str]:
    """The plain rule: a stop, a question or an exclamation mark before white space."""
    return PLAIN.split(text)


def score_splits(gold: Iterable[list[str]], split: Split) -> Scores:
    """Compare with gold documents; the input of ``split`` is the sentences of a document joined as they are."""
    exact = total = 0
    f1 = nf1 = 0.0
    for sentences in gold:
        wanted, found = _spans(sentences), _spans(split("".join(sentences)))
        best = _best_overlaps(wanted, found)
        total += len(wanted)
        exact += len(set(wanted) & set(found))
        f1 += sum(best)
        nf1 += sum(best) * min(1.0, len(wanted) / len(found))
    return Scores(exact / total, f1 / total, nf1 / total, total)


def _best_overlaps(wanted: list[tuple[int, int]], found: list[tuple[int, int]]) -> list[float]:
    best = [0.0] * len(wanted)
    first = 0
    for start, end in found:
        while first < len(wanted) and wanted[first][1] <= start:
            first += 1
        scores = []
        for number in range(first, len(wanted)):
            if wanted[number][0] >= end:
                break
            overlap = min(wanted[number][1], end) - max(wanted[number][0], start)
            scores.append((2 * overlap / (wanted[number][1] - wanted[number][0] + end - start), number))
        if scores:
            score, number = max(scores)
            best[number] = max(best[number], score)
    return best


def _spans(sentences: list[str]) -> list[tuple[int, int]]:
    """Where sentences begin and end in the text without white space."""
    ends = [0]
    for sentence in sentences:
        ends.append(ends[-1] + len("".join(sentence.split())))
    return list(pairwise(ends))


def _ours() -> Split:
    from corpus.sentences.split import split_sentences

    return split_sentences


def _rivals() -> tuple[dict[str, Split], list[str]]:
    """The installed ones, and the names of the others."""
    from corpus.sentences.splitters import load_splitter

    installed = [name for name, package in RIVALS.items() if find_spec(package)]
    return {name: load_splitter(name) for name in installed}, [name for name in RIVALS if name not in installed]


def _speeds(splitters: dict[str, Split], texts: list[str]) -> dict[str, float]:
    """MB/s, UTF-8."""
    works = {name: lambda split=split: [split(text) for text in texts] for name, split in splitters.items()}
    return {name: byte_count(texts) / 1e6 / seconds for name, seconds in time_in_turns(works).items()}


def _shorten(documents: list[str], megabytes: float) -> list[str]:
    """Beginnings of documents spread over the whole list, about ``megabytes`` of UTF-8."""
    beginnings = [text[:BEGINNING_CHARS] for text in documents]
    step = max(1, round(byte_count(beginnings) / (megabytes * 1e6)))
    return beginnings[::step]
