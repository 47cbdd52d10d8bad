"""Sentences that hold a benchmark sentence only together: those that it covers, and those that bear much of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from corpus.decontamination.search import Across, Tokens
from corpus.decontamination.stream import Stretch

if TYPE_CHECKING:
    from corpus.decontamination.index import ContaminationIndex

COVERED_SHARE = 0.5  # of a sentence's letters, by all items together: a piece may end one item and begin the next
BORNE_SHARE = 0.25  # of an item's weight: a long sentence with a part of it goes, too, so that the item is gone


class Held:
    """Tokens that lie in windows with their item, by their place among the letters of all documents."""

    def __init__(self, index: ContaminationIndex) -> None:
        self.index = index
        self.parts: list[tuple[np.ndarray, np.ndarray]] = []
        self.rows: list[np.ndarray] = []  # item, letter, token, sentence in which it begins
        self.ratios: list[np.ndarray] = []

    def add(self, found: Across, tokens: Tokens, stretch: Stretch) -> None:
        held = found.held
        item = np.full(len(held), found.item)
        if not held:
            return
        self.rows.append(
            np.stack([item, tokens.at_T[held] + stretch.offset, tokens.token_T[held], tokens.first_T[held]])
        )
        self.ratios.append(np.full(len(held), found.ratio))

    def pass_by(self, stretch: Stretch) -> None:
        """Remember how long its sentences are."""
        self.parts.append((stretch.sentence_S[stretch.carried :], stretch.sizes_S[stretch.carried :]))

    def sentences(self) -> Iterator[tuple[int, int, float]]:
        """Sentence, item and ratio of the best window, in no order and possibly repeated."""
        if not self.rows:
            return
        numbers, sizes = (np.concatenate(column) for column in zip(*self.parts, strict=True))
        sizes = np.bincount(numbers, sizes).astype(np.int64)
        (item, letter, token, sentence), ratio = np.concatenate(self.rows, axis=1), np.concatenate(self.ratios)
        is_borne = self._is_borne(item, token, sentence)
        yield from zip(sentence[is_borne].tolist(), item[is_borne].tolist(), ratio[is_borne].tolist(), strict=True)
        ngram = self.index.ngram
        letters = (letter[:, None] + np.arange(ngram)).ravel()
        owner = np.searchsorted(np.cumsum(sizes), letters, side="right")
        covered = np.bincount(owner[np.unique(letters, return_index=True)[1]], minlength=len(sizes))
        is_covered = (covered >= COVERED_SHARE * sizes)[owner]
        item, ratio = item.repeat(ngram)[is_covered], ratio.repeat(ngram)[is_covered]
        yield from zip(owner[is_covered].tolist(), item.tolist(), ratio.tolist(), strict=True)

    def _is_borne(self, item: np.ndarray, token: np.ndarray, sentence: np.ndarray) -> np.ndarray:
        """Whether the row's sentence bears ``BORNE_SHARE`` of the row's item."""
        pairs, pair = np.unique(np.stack([sentence, item]), axis=1, return_inverse=True)
        pair = pair.ravel()
        first = np.unique(np.stack([pair, token]), axis=1, return_index=True)[1]  # each token once
        weights = {number: self.index.weights_of(number) for number in np.unique(item).tolist()}
        weight = [weights[d][t] for d, t in zip(item[first].tolist(), token[first].tolist(), strict=True)]
        share = np.bincount(pair[first], weight, minlength=pairs.shape[1]) / self.index.total_D[pairs[1]]
        return (share >= BORNE_SHARE)[pair]
