"""Sentence pairs for next sentence prediction, by the rules of google-research/bert (create_pretraining_data.py).

Sentences of a document are gathered up to a target length and cut into A and B at a random sentence. Half the time, and
always when there is one sentence only, B comes from a random other document and the sentences it displaced are used
again. The longer side loses pieces at a random end until the pair fits. Each document has its own generator, so a
pass over the corpus is a pure function of (seed, pass); the price is that a pass is laid out before it is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pretrain.draws import derive_key
from pretrain.store import TokenStore

SPECIAL_PIECES = 3  # [CLS] A [SEP] B [SEP]
OTHER_DOCUMENT_TRIALS = 10


class Pair(NamedTuple):
    """Two stretches of the token store, ends exclusive, and whether B was drawn from elsewhere."""

    a_begin: int
    a_end: int
    b_begin: int
    b_end: int
    is_random: bool


class Sentences:
    """Where the sentences of chosen documents lie in the store.

    Args:
        store: an open token store.
        documents: numbers of the documents that pairs may use; at least two.
    """

    def __init__(self, store: TokenStore, documents: NDArray[np.int64]) -> None:
        self.documents = documents
        self._ends = store.documents
        self._starts = store.sentences
        self._first = np.searchsorted(store.sentences, store.documents)

    def borders(self, number: int) -> list[int]:
        """Begins of the sentences of ``documents[number]`` in the store, then the end of the last one."""
        document = self.documents[number]
        starts = self._starts[self._first[document] : self._first[document + 1]]
        return [*starts.tolist(), int(self._ends[document + 1]) - 1]  # the separator belongs to no sentence


def lay_out_pass(sentences: Sentences, length: int, short_share: float, seed: int, number: int) -> NDArray[np.int64]:
    """All pairs of pass ``number`` over the corpus, one row each: the fields of ``Pair``."""
    pairs: list[Pair] = []
    for document in range(len(sentences.documents)):
        rng = Random(int(derive_key(seed, "pairs", number, document)))
        pairs.extend(pairs_of_document(sentences, document, length - SPECIAL_PIECES, short_share, rng))
    return np.array(pairs, np.int64)


def pairs_of_document(
    sentences: Sentences, document: int, most_pieces: int, short_share: float, rng: Random
) -> Iterator[Pair]:
    """The pairs that begin in one document; A and B together have at most ``most_pieces`` pieces."""
    borders = sentences.borders(document)
    count = len(borders) - 1
    target = rng.randint(2, most_pieces) if rng.random() < short_share else most_pieces
    first = 0
    while first < count:
        last = first + 1
        while last < count and borders[last] - borders[first] < target:
            last += 1
        cut = rng.randint(first + 1, last - 1) if last - first > 1 else last
        a = (borders[first], borders[cut])
        is_random = last - first == 1 or rng.random() < 0.5
        if is_random:
            b = _stretch_elsewhere(sentences, document, target - (a[1] - a[0]), rng)
            last = cut  # what B displaced is used again
        else:
            b = (borders[cut], borders[last])
        yield Pair(*_truncate(a, b, most_pieces, rng), is_random)
        first = last


def _stretch_elsewhere(sentences: Sentences, document: int, target: int, rng: Random) -> tuple[int, int]:
    for _ in range(OTHER_DOCUMENT_TRIALS):
        other = rng.randrange(len(sentences.documents))
        if other != document:
            break
    borders = sentences.borders(other)
    begin = rng.randrange(len(borders) - 1)
    end = begin + 1
    while end < len(borders) - 1 and borders[end] - borders[begin] < target:
        end += 1
    return borders[begin], borders[end]


def _truncate(a: tuple[int, int], b: tuple[int, int], most_pieces: int, rng: Random) -> tuple[int, int, int, int]:
    sides = [list(a), list(b)]
    while sum(end - begin for begin, end in sides) > most_pieces:
        longer = sides[0] if _a_is_longer(sides) else sides[1]
        if rng.random() < 0.5:
            longer[0] += 1
        else:
            longer[1] -= 1
    return sides[0][0], sides[0][1], sides[1][0], sides[1][1]


def _a_is_longer(sides: list[list[int]]) -> bool:
    (a_begin, a_end), (b_begin, b_end) = sides
    return a_end - a_begin > b_end - b_begin  # a tie shortens B
