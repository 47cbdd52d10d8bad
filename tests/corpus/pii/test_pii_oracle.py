"""Labelled Korean sentences, another project's cases and real reviews: the figures the detector is held to."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import zstandard

from corpus.pii.detect import find_pii
from corpus.pii.types import PII_TYPES
from launch.bench.gold import read_labelled, score_spans

Shared = Callable[[str], Path]
Found = tuple[int, int, str]


def rows_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def found_in(text: str) -> list[Found]:
    return [(span.start, span.end, span.type) for span in find_pii(text)]


def test_korean_sentences_are_scored_above_the_bars(shared: Shared) -> None:
    """A prediction is right when a gold span of its type, not taken yet, overlaps it by half or more."""
    labelled = read_labelled(shared("oracle/pii_public.jsonl"))
    scores = score_spans(labelled, found_in)
    assert sum(len(spans) for _, spans in labelled) == 155
    assert scores["precision"] >= 0.97
    assert scores["recall"] >= 0.97
    assert scores["exact_recall"] >= 0.95
    assert set(scores["recall_by_type"]) == set(PII_TYPES)
    assert {name for name, share in scores["recall_by_type"].items() if share < 0.9} == set()
    assert scores["flagged"] <= 2


def test_the_cases_of_presidio_pass(shared: Shared) -> None:
    rows = rows_of(shared("oracle/pii_presidio.jsonl"))
    failed = [row for row in rows if [list(f) for f in found_in(row["text"]) if f[2] == row["type"]] != row["spans"]]
    assert len(rows) == 90
    assert len(failed) <= 3, failed


def test_real_reviews_stay_almost_untouched(shared: Shared) -> None:
    path = shared("data/corpora/nsmc_reviews.jsonl.zst")
    reviews: list[str] = []
    with path.open("rb") as packed:
        stream = zstandard.ZstdDecompressor(max_window_size=2**28).stream_reader(packed)
        for line in io.TextIOWrapper(stream, "utf-8"):
            reviews += json.loads(line)["text"].split("\n")
            if len(reviews) > 60_000:
                break
    changed = sum(bool(find_pii(review)) for review in reviews)
    assert changed / len(reviews) <= 0.0005
