"""The stateless shuffle."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pretrain.draws import as_share, derive_key, draw_words
from pretrain.order import Order, permute


@given(size=st.integers(1, 700), seed=st.integers(0, 99))
def test_every_row_comes_exactly_once(size: int, seed: int) -> None:
    images = permute(np.arange(size), size, derive_key(seed, "order"))
    assert sorted(images.tolist()) == list(range(size))


def test_the_shuffle_looks_random() -> None:
    images = permute(np.arange(10_000), 10_000, derive_key(1, "order"))
    assert abs(np.corrcoef(np.arange(10_000), images)[0, 1]) < 0.03
    assert np.count_nonzero(images == np.arange(10_000)) < 10
    other = permute(np.arange(10_000), 10_000, derive_key(2, "order"))
    assert np.count_nonzero(images == other) < 10


def test_draws_are_uniform() -> None:
    shares = as_share(draw_words(derive_key(1, "test"), np.arange(100_000)))
    assert np.allclose(np.histogram(shares, 10, (0, 1))[0] / 10_000, 1, atol=0.05)


def test_epochs_of_different_sizes_follow_each_other() -> None:
    sizes = [5, 3, 7]
    epochs, rows = Order(lambda epoch: sizes[epoch], seed=1).locate(np.arange(15))
    assert epochs.tolist() == [0] * 5 + [1] * 3 + [2] * 7
    for epoch, size in enumerate(sizes):
        assert sorted(rows[epochs == epoch].tolist()) == list(range(size))


def test_jumping_to_a_place_gives_what_walking_there_gives() -> None:
    walked = Order(lambda epoch: 11, seed=4)
    everything = np.concatenate([walked.locate(np.arange(n, n + 4))[1] for n in range(0, 80, 4)])
    assert Order(lambda epoch: 11, seed=4).locate(np.arange(60, 75))[1].tolist() == everything[60:75].tolist()
