"""Greedy sentence matching (KLUE 3.2.1, Algorithm 1): a random sentence S, the T with the largest ROUGE, and again.

ROUGE is the F1 of character bigrams, repeated ones counted (ROUGE-2). Of equal scores the first sentence wins, so the
pairs equal those of brute force. An inverted index is read from the rarest bigram of S on; when no unseen sentence can
win any more, only sentences that still can are finished by their own bigrams. Legend: N sentences, F bigrams of S.
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
LONG_LIST = 64  # a bigram in less than 1/64 of the sentences is read without a check of the bound


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
    """Numbered bigrams of sentences by sentence (``features``) and the sentences of each bigram (``holders``)."""

    def __init__(self, features: Sequence[Ints], places: Ints) -> None:
        self.places, self.lengths_N = places, np.array([len(features[place]) for place in places], dtype=np.int64)
        self.starts_N = np.concatenate([[0], np.cumsum(self.lengths_N)])
        self.features = np.concatenate([features[place] for place in places])
        order = np.argsort(self.features, kind="stable")
        rows = np.repeat(np.arange(len(places)), self.lengths_N)
        self.holders, kinds = rows[order], self.features[order]
        size = int(kinds[-1]) + 1 if len(kinds) else 0
        self.bounds = np.searchsorted(kinds, np.arange(size + 1))
        self.is_left_N = np.ones(len(places), dtype=bool)
        self.row_of = dict(zip(places.tolist(), range(len(places)), strict=True))

    def remove(self, row: int) -> None:
        """Take a sentence out."""
        self.is_left_N[row] = False

    def best(self, row: int) -> tuple[int, float]:
        """The first row with the largest score with ``row`` among those left, and the score."""
        own = self.features[self.starts_N[row] : self.starts_N[row + 1]]
        own = own[np.argsort(self.bounds[own + 1] - self.bounds[own], kind="stable")]
        shared_N = np.zeros(len(self.places), dtype=np.int64)
        done, few = 0, len(self.places) // LONG_LIST
        for done, feature in enumerate(own):
            begin, end = self.bounds[feature], self.bounds[feature + 1]
            rest = len(own) - done
            if end - begin > few and self._largest(shared_N, len(own)) > 2 * rest / (len(own) + rest):
                return self._finish(shared_N, own, done)
            shared_N[self.holders[begin:end]] += 1
        scores_N = self._scores(shared_N, len(own))
        winner = int(np.argmax(scores_N))
        return winner, float(scores_N[winner])

    def _scores(self, shared_N: Ints, length: int) -> NDArray[np.float64]:
        scores_N = 2 * shared_N / np.maximum(length + self.lengths_N, 1)
        scores_N[~self.is_left_N] = -1
        return scores_N

    def _largest(self, shared_N: Ints, length: int) -> float:
        return float(self._scores(shared_N, length).max())

    def _finish(self, shared_N: Ints, own: Ints, done: int) -> tuple[int, float]:
        """Score the rows that can reach the largest score so far, with the bigrams from place ``done`` on."""
        bound = self._largest(shared_N, len(own))
        possible_N = self._scores(shared_N + np.minimum(len(own) - done, self.lengths_N), len(own))
        rows = np.flatnonzero((possible_N >= bound) & (shared_N > 0))
        wanted = np.zeros(len(self.bounds), dtype=bool)
        wanted[own[done:]] = True
        sizes = self.lengths_N[rows]
        ends = np.cumsum(sizes)
        flat = np.repeat(self.starts_N[rows] - (ends - sizes), sizes) + np.arange(int(ends[-1]))
        hits = np.add.reduceat(wanted[self.features[flat]].astype(np.int64), ends - sizes)
        scores = 2 * (shared_N[rows] + hits) / (len(own) + sizes)
        winner = int(np.argmax(scores))
        return int(rows[winner]), float(scores[winner])


def match_sentences(sentences: Sequence[str], seed: int) -> list[Match]:
    """Pairs in the order in which Algorithm 1 finds them; with an odd number of sentences one is left out."""
    numbers = dict[tuple[str, int], int]()
    features = [
        np.array([numbers.setdefault(b, len(numbers)) for b in bigram_counts(text)], dtype=np.int64)
        for text in sentences
    ]
    if len(sentences) < 2:
        return []
    order = list(range(len(sentences)))
    Random(seed).shuffle(order)
    index = BigramIndex(features, np.arange(len(sentences)))
    matches, left = list[Match](), len(sentences)
    for place in order:
        row = index.row_of.get(place)
        if left < 2 or row is None or not index.is_left_N[row]:
            continue
        index.remove(row)
        other, score = index.best(row)
        index.remove(other)
        matches.append(Match(place, int(index.places[other]), score))
        left -= 2
        if left < REBUILD_SHARE * len(index.places) and left >= 2:
            index = BigramIndex(features, index.places[index.is_left_N])
    return matches
