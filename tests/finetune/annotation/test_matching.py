"""Greedy sentence matching equals brute force, ties included; the score is ROUGE-2 on characters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import fmean
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.documents.atomic_files import read_bytes
from finetune.annotation.matching import Match, bigram_counts, match_sentences, rouge


def brute_force(sentences: list[str], seed: int) -> list[Match]:
    """Algorithm 1 as written in the paper."""
    order = list(range(len(sentences)))
    Random(seed).shuffle(order)
    bigrams = [frozenset(bigram_counts(text)) for text in sentences]
    left, matches = set(order), list[Match]()
    for first in order:
        if first not in left or len(left) < 2:
            continue
        left.discard(first)
        own, best = bigrams[first], Match(first, -1, -1.0)
        for other in sorted(left):
            total = len(own) + len(bigrams[other])
            score = 2 * len(own & bigrams[other]) / total if total else 0.0
            if score > best.score:
                best = Match(first, other, score)
        left.discard(best.second)
        matches.append(best)
    return matches


@given(st.lists(st.text("가나다 ", max_size=12), max_size=30), st.integers(0, 3))
def test_short_texts_with_many_ties_are_matched_as_by_brute_force(sentences: list[str], seed: int) -> None:
    assert match_sentences(sentences, seed) == brute_force(sentences, seed)


def invented(count: int, seed: int = 0) -> list[str]:
    """Sentences of words whose frequencies fall as in a language."""
    rng = Random(seed)
    words = ["".join(rng.choices([chr(0xAC00 + 28 * n) for n in range(300)], k=rng.randint(1, 4))) for _ in range(3000)]
    weights = [1 / (n + 1) for n in range(len(words))]
    return [" ".join(rng.choices(words, weights, k=rng.randint(4, 15))) for _ in range(count)]


def test_the_index_equals_brute_force() -> None:
    sentences = invented(600)
    assert match_sentences(sentences, 1) == brute_force(sentences, 1)


def test_rouge_counts_repeated_bigrams_and_ignores_spaces() -> None:
    assert rouge("가나 가나", "가나가나") == 1
    assert rouge("가나가나", "가나") == pytest.approx(2 * 1 / (3 + 1))
    assert rouge("가", "") == 0


def sentences_of(path: Path, count: int) -> list[str]:
    text = read_bytes(path, 1 << 28).decode().replace("\\n", ". ")
    found = [part.strip() for part in text.split(". ") if 20 <= len(part.strip()) <= 90]
    return list(dict.fromkeys(found))[:count]


@pytest.mark.slow
def test_two_thousand_sentences_of_book_reviews_equal_brute_force(shared: Callable[[str], Path]) -> None:
    sentences = sentences_of(shared("data/corpora/book_reviews.jsonl.zst"), 2000)
    matches = match_sentences(sentences, 1)
    assert matches == brute_force(sentences, 1)
    fifths = [fmean(match.score for match in matches[n : n + 200]) for n in range(0, 1000, 200)]
    assert fifths == sorted(fifths, reverse=True)  # "producing less similar pairs"
    rng = Random(0)
    assert fmean(rouge(*rng.sample(sentences, 2)) for _ in range(500)) < fifths[-1]


@pytest.mark.slow
def test_the_time_grows_slowly_enough_for_100_000_sentences() -> None:
    times = []
    for count in (4_000, 8_000):
        sentences, begin = invented(count), process_time()
        match_sentences(sentences, 1)
        times.append(process_time() - begin)
    growth = max(2.0, times[1] / times[0])
    doublings = 3.65  # of 8,000 to 100,000
    assert times[1] * growth**doublings <= 30 * 60
