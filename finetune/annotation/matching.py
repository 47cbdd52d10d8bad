"""Greedy sentence matching (KLUE 3.2.1, Algorithm 1): a random sentence S, the T with the largest ROUGE, and again.

ROUGE is the F1 of character bigrams, repeated ones counted (ROUGE-2). Of equal scores the first sentence wins, so the
pairs equal those of brute force. A sparse matrix counts what S shares with each sentence; it is rebuilt without the
matched sentences from time to time. 100,000 sentences take about a CPU minute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain, pairwise
from random import Random
from typing import NamedTuple

import numpy as np

REBUILD_SHARE = 0.7  # the matrix is rebuilt when fewer of its sentences are left


class Match(NamedTuple):
    """Places of two sentences, and their score from 0 to 1."""

    first: int
    second: int
    score: float


def bigram_counts(text: str) -> list[tuple[str, int]]:
    """Character bigrams of a text without white space; the second of two equal ones is numbered 1, and so on."""
    counts = Counter(map("".join, pairwise("".join(text.split()))))
    return [(bigram, number) for bigram, count in counts.items() for number in range(count)]


def rouge(first: str, second: str) -> float:
    """F1 of character bigrams of two texts, 0 to 1."""
    one, two = Counter(bigram_counts(first)), Counter(bigram_counts(second))
    total = one.total() + two.total()
    return 2 * (one & two).total() / total if total else 0.0


def match_sentences(sentences: Sequence[str], seed: int) -> list[Match]:
    """Pairs in the order in which Algorithm 1 finds them; with an odd number of sentences one is left out.

    Legend: ``N`` sentences, ``F`` numbered bigrams.
    """
    from scipy.sparse import csc_array

    if len(sentences) < 2:
        return []
    numbers = dict[tuple[str, int], int]()
    features = [[numbers.setdefault(pair, len(numbers)) for pair in bigram_counts(text)] for text in sentences]
    lengths_N, places_N = np.array([*map(len, features)]), np.arange(len(sentences))
    where = np.repeat(places_N, lengths_N), np.fromiter(chain.from_iterable(features), np.int64)
    whole_NF = index_NF = csc_array((np.ones_like(where[0]), where), (len(sentences), len(numbers)))
    is_left_N = np.ones(len(sentences), dtype=bool)
    order = places_N.tolist()
    Random(seed).shuffle(order)
    matches = list[Match]()
    for first in order:
        left = len(sentences) - 2 * len(matches)
        if left < 2 or not is_left_N[first]:
            continue
        if left < REBUILD_SHARE * len(places_N):
            places_N = np.flatnonzero(is_left_N)
            index_NF = whole_NF[places_N]
        is_left_N[first] = False
        shared_N = index_NF[:, features[first]].sum(axis=1)
        scores_N = 2 * shared_N / np.maximum(lengths_N[first] + lengths_N[places_N], 1)
        winner = int(np.where(is_left_N[places_N], scores_N, -1).argmax())
        second = int(places_N[winner])
        is_left_N[second] = False
        matches.append(Match(first, second, float(scores_N[winner])))
    return matches
