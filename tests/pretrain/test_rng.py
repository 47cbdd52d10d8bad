"""Random numbers and shuffles that are functions of a key and a place."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pretrain.rng import as_uniform, derive_key, permute, random_bits


@given(size=st.integers(1, 700), seed=st.integers(0, 99))
def test_every_row_comes_exactly_once(size: int, seed: int) -> None:
    images = permute(np.arange(size), size, derive_key(seed, "order"))
    assert sorted(images.tolist()) == list(range(size))


def test_many_permutations_at_once_are_those_of_each_alone() -> None:
    index, size = np.array([0, 1, 2, 40, 900, 0]), np.array([1, 2, 3, 64, 1000, 2**40])
    key = np.array([derive_key(number, "order") for number in range(6)])
    alone = [int(permute(index[n : n + 1], int(size[n]), key[n])[0]) for n in range(6)]
    assert permute(index, size, key).tolist() == alone


def test_the_shuffle_looks_random() -> None:
    images = permute(np.arange(10_000), 10_000, derive_key(1, "order"))
    assert abs(np.corrcoef(np.arange(10_000), images)[0, 1]) < 0.03
    assert np.count_nonzero(images == np.arange(10_000)) < 10
    other = permute(np.arange(10_000), 10_000, derive_key(2, "order"))
    assert np.count_nonzero(images == other) < 10


def test_draws_are_uniform() -> None:
    shares = as_uniform(random_bits(derive_key(1, "test"), np.arange(100_000)))
    assert np.allclose(np.histogram(shares, 10, (0, 1))[0] / 10_000, 1, atol=0.05)
