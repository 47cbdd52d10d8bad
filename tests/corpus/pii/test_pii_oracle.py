"""Labelled Korean sentences, another project's cases and real reviews: the figures the detector is held to."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import zstandard

from corpus.pii.detect import find_pii
from corpus.pii.types import PII_TYPES

Shared = Callable[[str], Path]
Found = tuple[int, int, str]


def overlap(left: Found, right: Found) -> float:
    """Intersection over union."""
    shared_length = min(left[1], right[1]) - max(left[0], right[0])
    return shared_length / (max(left[1], right[1]) - min(left[0], right[0]))


def rows_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def found_in(text: str) -> list[Found]:
    return [(span.start, span.end, span.type) for span in find_pii(text)]


def test_korean_sentences_are_scored_above_the_bars(shared: Shared) -> None:
    """A prediction is right when a gold span of its type, not taken yet, overlaps it by half or more."""
    gold_counts: Counter[str] = Counter()
    right_counts: Counter[str] = Counter()
    predicted_count = flagged = exact = 0
    for row in rows_of(shared("oracle/pii_public.jsonl")):
        gold: list[Found] = [(start, end, name) for start, end, name in row["spans"]]
        predicted = found_in(row["text"])
        gold_counts.update(name for *_, name in gold)
        predicted_count += len(predicted)
        flagged += bool(predicted) and not gold
        exact += len(set(gold) & set(predicted))
        for span in predicted:
            hit = next((g for g in gold if g[2] == span[2] and overlap(span, g) >= 0.5), None)
            if hit:
                gold.remove(hit)
                right_counts[span[2]] += 1
    right, total = right_counts.total(), gold_counts.total()
    assert total == 155
    assert right / predicted_count >= 0.97
    assert right / total >= 0.97
    assert exact / total >= 0.95
    assert {name for name in PII_TYPES if right_counts[name] < 0.9 * gold_counts[name]} == set()
    assert flagged <= 2


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
