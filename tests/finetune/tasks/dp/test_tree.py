"""The search for a tree against all trees."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from finetune.tasks.dp.task import best_right_headed_trees


def is_projective(heads) -> bool:
    arcs = [(min(w, h), max(w, h)) for w, h in enumerate(heads, start=1) if h]
    return not any(a < c < b < d for a, b in arcs for c, d in arcs)


def right_headed_trees(n: int):
    choices = [range(w + 1, n + 1) for w in range(1, n)]
    return [[*heads, 0] for heads in product(*choices) if is_projective([*heads, 0])]


def test_the_trees_found_are_the_best_of_all_right_headed_projective_trees():
    scores = [np.random.default_rng([seed, n]).normal(size=(n, n + 1)) for seed in range(10) for n in range(1, 7)]
    all_trees = {n: right_headed_trees(n) for n in range(1, 7)}
    for arcs, found in zip(scores, best_right_headed_trees(scores), strict=True):
        totals = [sum(arcs[w, h] for w, h in enumerate(heads)) for heads in all_trees[len(arcs)]]
        assert found == all_trees[len(arcs)][int(np.argmax(totals))]


def test_arcs_that_no_right_headed_tree_has_are_ignored_at_any_score():
    scores = np.where(np.tri(5, 6) > 0, np.nan, 0.0)
    scores[:, 0] = np.inf
    (heads,) = best_right_headed_trees([scores])
    assert heads[-1] == 0
    assert all(head > word for word, head in enumerate(heads[:-1], start=1))


@pytest.mark.parametrize("cells", [2 * 81, 80])  # two sentences, and less than one
def test_more_sentences_than_fit_at_once_give_the_same_trees(monkeypatch, cells):
    scores = [np.random.default_rng(seed).normal(size=(9, 10)) for seed in range(5)]
    whole = best_right_headed_trees(scores)
    monkeypatch.setattr("finetune.tasks.dp.task.CELLS_AT_ONCE", cells)
    assert best_right_headed_trees(scores) == whole
