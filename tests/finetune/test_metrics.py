"""Metrics of tasks against scikit-learn and scipy, also at their edges."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from finetune.metrics import average_ranks, pearson, softmax, spearman

numbers = st.lists(st.integers(-3, 3).map(float), min_size=2, max_size=8)


@given(numbers, st.randoms())
def test_correlations_equal_those_of_scipy(x: list[float], random: np.random.Generator) -> None:
    y = [value + random.choice((0.0, 1.0, -2.0)) for value in x]
    x_N, y_N = np.array(x), np.array(y)
    assert average_ranks(x_N).tolist() == stats.rankdata(x_N).tolist()
    if len(set(x)) > 1 and len(set(y)) > 1:
        assert pearson(x_N, y_N) == pytest.approx(100 * stats.pearsonr(x_N, y_N)[0])
        assert spearman(x_N, y_N) == pytest.approx(100 * stats.spearmanr(x_N, y_N)[0])


@pytest.mark.parametrize(("x", "y"), [([1.0], [2.0]), ([], []), ([1.0, 1.0], [1.0, 2.0]), ([1.0, 2.0], [3.0, 3.0])])
def test_a_correlation_without_spread_is_undefined_and_warns_of_nothing(x: list[float], y: list[float]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(pearson(np.array(x), np.array(y)))


def test_softmax_is_that_of_scipy_even_for_large_scores() -> None:
    scores = np.array([[1e4, 1e4 - 1, 0.0], [-5.0, 2.0, 2.0]], np.float32)
    assert softmax(scores) == pytest.approx(special.softmax(scores.astype(np.float64), axis=-1))
