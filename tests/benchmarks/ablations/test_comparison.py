"""Figures of planted values and documents are compared as scores are."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.ablations.comparison import compare_summaries, randomization_p, summarize
from finetune.score.significance import EXAMPLES_ONLY, PAIRED


def amounts(rng: np.random.Generator, shift: float, seeds: int) -> dict[int, dict[str, tuple[float, float]]]:
    experiment = rng.normal(5, 1, 40)
    return {
        seed: {str(n): (float(experiment[n] + shift + rng.normal(0, 0.1)), 1.0) for n in range(40)}
        for seed in range(seeds)
    }


def test_figure_is_the_sum_of_amounts_over_what_they_count_for() -> None:
    found = summarize({1: {"a": (6.0, 2.0), "b": (3.0, 1.0)}, 2: {"b": (1.0, 1.0), "a": (1.0, 3.0)}})
    assert found.sample.scores_S.tolist() == [3.0, 0.5]
    assert found.sample.seeds == (1, 2) and found.examples == ("a", "b")
    assert set(np.round(found.sample.resampled_SB[1], 6)) == {round(1 / 3, 6), 0.5, 1.0}


def test_real_difference_is_distinguished_from_none() -> None:
    rng = np.random.default_rng(1)
    same, other = amounts(rng, 0.0, 3), amounts(np.random.default_rng(1), 0.5, 3)
    again = amounts(np.random.default_rng(2), 0.0, 3)
    real, none = compare_summaries({
        "real": (summarize(same), summarize(other)), "none": (summarize(same), summarize(again))
    })  # fmt: skip
    assert real.difference is not None and real.difference.test == PAIRED
    assert real.difference.value == pytest.approx(0.5, abs=0.05)
    assert real.p_holm is not None and real.p_holm < 0.05
    assert none.p_holm is not None and none.p_holm > 0.05


def test_one_seed_is_tested_over_examples() -> None:
    one, other = (
        summarize(amounts(np.random.default_rng(1), 0.0, 1)),
        summarize(amounts(np.random.default_rng(1), 0.2, 1)),
    )
    [found] = compare_summaries({"it": (one, other)})
    assert found.difference is not None and found.difference.test == EXAMPLES_ONLY
    assert found.p is not None and found.p < 0.01
    assert randomization_p(one, one) == 1.0


def test_other_examples_cannot_be_swapped() -> None:
    assert randomization_p(summarize({1: {"a": (1.0, 1.0)}}), summarize({1: {"b": (1.0, 1.0)}})) is None
