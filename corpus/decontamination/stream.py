"""Documents as streams of letters: their sentences folded and joined, so that windows run over the ends of sentences.

Thousands of sentences are folded at once; a long document comes in stretches that overlap, so that time and memory stay
linear and every window lies within one stretch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from corpus.folding import fold, fold_all

BATCH_CHARS = 40_000  # arrays of a stretch stay in the processor's cache


class Stretch(NamedTuple):
    """Letters of consecutive documents, one after another.

    Fields:
        letters: code points of folded text, uint32.
        sizes_D: letters of each document, as far as it lies in the stretch.
        sentence_S, sizes_S: number of each sentence among all, and its letters; a cut one stands in several parts.
        offset: letters of all documents before the stretch.
        carried: leading sentences or parts that the stretch before had, too.
    """

    letters: np.ndarray
    sizes_D: np.ndarray
    sentence_S: np.ndarray
    sizes_S: np.ndarray
    offset: int
    carried: int


class _Parts(NamedTuple):
    """Sentences or parts of them: their letters, and of each its size, its number and that of its document."""

    letters: np.ndarray
    sizes: np.ndarray
    sentence: np.ndarray
    document: np.ndarray

    def after(self, before: _Parts) -> _Parts:
        return _Parts(*(np.concatenate(pair) for pair in zip(before, self, strict=True)))

    def tail(self, reach: int) -> _Parts:
        """The last ``reach`` letters, at most those of the last document."""
        is_last = self.document == self.document[-1]
        left = np.minimum(self.sizes, np.maximum(0, reach - (self.sizes[::-1].cumsum()[::-1] - self.sizes)))
        keep = np.flatnonzero(is_last & (left > 0))
        sizes = left[keep]
        return _Parts(self.letters[len(self.letters) - sizes.sum() :], sizes, self.sentence[keep], self.document[keep])


def cut_stretches(documents: Iterable[Sequence[str]], letter_C: np.ndarray, reach: int) -> Iterator[Stretch]:
    """All documents in order.

    Args:
        letter_C: ``letter_table()``.
        reach: letters of the longest window; stretches of one document overlap by as many.
    """
    carried: _Parts | None = None
    before = 0
    for batch in _batches(documents):
        texts, sentence, document = zip(*batch, strict=True)
        letters, sizes = fold_all(texts, letter_C)
        parts = _Parts(letters, sizes, np.array(sentence), np.array(document))
        held = same = 0
        if carried and len(carried.sizes) and carried.document[-1] == document[0]:
            held, same = len(carried.letters), len(carried.sizes)
            parts = parts.after(carried)
        firsts = np.flatnonzero(np.diff(parts.document, prepend=-1))
        sizes_D = np.add.reduceat(parts.sizes, firsts)
        yield Stretch(parts.letters, sizes_D, parts.sentence, parts.sizes, before - held, same)
        before += len(letters)
        carried = parts.tail(reach)


def _batches(documents: Iterable[Sequence[str]]) -> Iterator[list[tuple[str, int, int]]]:
    """Sentences or parts of them, with the number of each sentence and of its document, ``BATCH_CHARS`` and more at a
    time; a document lies in one batch unless it is longer than that by itself.
    """
    batch: list[tuple[str, int, int]] = []
    number = size = 0
    for owner, sentences in enumerate(documents):
        is_long = sum(map(len, sentences)) >= BATCH_CHARS
        for n, sentence in enumerate(sentences, number):
            for part in _cut(sentence) if is_long else (sentence,):
                batch.append((part, n, owner))
                size += len(part)
                if is_long and size >= BATCH_CHARS:
                    yield batch
                    batch, size = [], 0
        number += len(sentences)
        if size >= BATCH_CHARS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _cut(sentence: str) -> list[str]:
    if len(sentence) <= BATCH_CHARS:
        return [sentence]
    text = fold(sentence)
    return [text[start : start + BATCH_CHARS] for start in range(0, len(text), BATCH_CHARS)]
