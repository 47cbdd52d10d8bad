"""The best dependency tree of a Korean sentence: projective, every head to the right of its word, one root.

All 22,496 arcs of KLUE-DP dev point right or to the root, so the search is smaller than Eisner's: a span of words is
always headed by its last word, and the last word of the sentence is the root. Exact, O(n^3) time, a numpy call per
span length for all sentences of one length together.
Legend: ``B`` sentences of ``n`` words each; head 0 is the root, words count from 1.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

CELLS_AT_ONCE = 1 << 20  # n * n cells of a table for each sentence; bounds memory at about 50 MB


def best_right_headed_trees(scores: Sequence[NDArray[np.floating]]) -> list[list[int]]:
    """Find the tree with the highest sum of arc scores for each sentence.

    Here 1 → 3 and 2 → 4 score highest, but they would cross. Of the trees left, 1 → 3, 2 → 3, 3 → 4 has 3 + 2 + 1, and
    1 → 4, 2 → 4, 3 → 4 only 1 + 3 + 1:

    >>> scores = np.array([[0, 0, 0, 3, 1], [0, 0, 0, 2, 3], [0, 0, 0, 0, 1], [0, 0, 0, 0, 0]])
    >>> best_right_headed_trees([scores])
    [[3, 3, 4, 0]]

    Args:
        scores: one (n, n + 1) array a sentence, n >= 1: ``[w - 1, h]`` for the arc from word ``w`` to head ``h``.
            Entries that no such tree uses (h <= w, root of any word but the last) are ignored.
    """
    trees: list[list[int]] = [[] for _ in scores]
    by_length = defaultdict[int, list[int]](list)
    for number, arcs in enumerate(scores):
        by_length[len(arcs)].append(number)
    for n, numbers in by_length.items():
        size = max(1, CELLS_AT_ONCE // n**2)
        for begin in range(0, len(numbers), size):
            chosen = numbers[begin : begin + size]
            leftmost = find_leftmost_dependents(np.stack([scores[number][:, 1:] for number in chosen]))
            for number, splits in zip(chosen, leftmost, strict=True):
                trees[number] = list(read_heads(splits))
    return trees


def find_leftmost_dependents(scores_Bnn: NDArray[np.floating]) -> Iterable[list[list[int]]]:
    """Fill the table of the best trees of all spans, short ones first; for each sentence the best k by ``[i][j]``.

    ``scores_Bnn[b, k, j]``: the arc from word k + 1 to word j + 1. The leftmost dependent of j is k, which covers i..k:

        tree[i, j] = max over k of  tree[i, k] + score(k's head is j) + tree[k + 1, j]      i <= k < j
    """
    batch, n, _ = scores_Bnn.shape
    tree_nnB = np.zeros((n, n, batch))
    leftmost_nnB = np.zeros((n, n, batch), dtype=np.int32)
    scores_nnB = scores_Bnn.transpose(1, 2, 0).astype(np.float64)
    for length in range(1, n):
        i = np.arange(n - length)
        split = i[:, None] + np.arange(length)
        j = i + length
        candidates = tree_nnB[i[:, None], split] + scores_nnB[split, j[:, None]] + tree_nnB[split + 1, j[:, None]]
        best = candidates.argmax(axis=1)
        tree_nnB[i, j] = np.take_along_axis(candidates, best[:, None], axis=1)[:, 0]
        leftmost_nnB[i, j] = i[:, None] + best
    tables: list[list[list[int]]] = leftmost_nnB.transpose(2, 0, 1).tolist()
    return tables


def read_heads(leftmost: list[list[int]]) -> list[int]:
    """The heads of the best tree, from the table of leftmost dependents."""
    n = len(leftmost)
    heads = [0] * n
    spans = [(0, n - 1)]
    while spans:
        i, j = spans.pop()
        if i < j:
            k = leftmost[i][j]
            heads[k] = j + 1
            spans += [(i, k), (k + 1, j)]
    return heads
