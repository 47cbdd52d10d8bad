"""Intervals: they cover the truth as often as they say, match another library's, and draw sentences, not words."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tokenizer.measuring import samples
from tokenizer.measuring.samples import interval, make_sample, resample


def ratio(sums: np.ndarray) -> np.ndarray:
    return sums[:, 0] / sums[:, 1]


def clustered(rng: np.random.Generator, sentences: int) -> np.ndarray:
    """Hits and words of sentences; a sentence decides how likely its words are hits, 0.7 on average."""
    words = rng.integers(5, 16, sentences)
    return np.stack([rng.binomial(words, rng.beta(7, 3, sentences)), words], axis=1).astype(float)


def test_intervals_cover_the_true_figure_in_about_95_of_100_texts() -> None:
    rng = np.random.default_rng(0)
    intervals = [interval(ratio(resample(clustered(rng, 150), number % 16))) for number in range(300)]

    covered = sum(low <= 0.7 <= high for low, high in filter(None, intervals))

    assert 0.91 <= covered / 300 <= 0.98


def test_drawing_words_would_promise_too_much() -> None:
    sums = clustered(np.random.default_rng(0), 400)
    hits, words = sums.sum(axis=0)

    low, high = interval(ratio(resample(sums))) or (0, 0)

    share = hits / words
    alone = 1.96 * (share * (1 - share) / words) ** 0.5  # as if each word were drawn by itself
    assert (high - low) / 2 > 1.3 * alone


def test_the_ends_are_those_of_another_library() -> None:
    sums = clustered(np.random.default_rng(5), 300)
    theirs = stats.bootstrap(
        (sums[:, 0], sums[:, 1]), lambda a, b, axis: a.sum(axis) / b.sum(axis),
        paired=True, vectorized=True, n_resamples=4000, method="percentile", rng=np.random.default_rng(1),
    ).confidence_interval  # fmt: skip

    assert interval(ratio(resample(sums))) == pytest.approx((theirs.low, theirs.high), abs=0.0025)


def test_draws_are_the_same_every_time_and_others_for_another_text() -> None:
    sums = clustered(np.random.default_rng(5), 30)

    assert resample(sums).tolist() == resample(sums.copy()).tolist() != resample(sums, 1).tolist()
    assert resample(sums).shape == (samples.RESAMPLES, 2)


def test_one_sentence_has_no_interval() -> None:
    assert interval(ratio(resample(np.ones((1, 2))))) is None
    assert interval(np.array([np.nan, 1.0, 1.0])) == (1.0, 1.0)


def test_a_sample_counts_words_by_sentence() -> None:
    sample = make_sample(np.array([0, 0, 0, 4, 9, 9]), np.array([2, 0, 2, 1, 0, 0]))  # sentences 1 to 3 are empty
    each = np.array([[1, 10], [1, 20], [1, 30]])

    assert sample.blocks == 3
    assert sample.counts(4).tolist() == [3, 1, 2, 0]
    assert sample.sums(each).tolist() == [[3, 70], [1, 20], [2, 20]]


def test_a_long_text_is_drawn_in_runs_of_neighbouring_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "MAX_BLOCKS", 4)

    sample = make_sample(np.arange(10), np.zeros(10, np.int64))

    assert sample.sums(np.ones((1, 1), np.int64)).tolist() == [[3], [2], [3], [2]]
