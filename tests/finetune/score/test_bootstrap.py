"""Resampling and randomisation: against scipy, over groups, and how often they claim what is not there."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from finetune.examples import Row
from finetune.registry import TASKS
from finetune.score.bootstrap import randomize, resample
from finetune.score.significance import EXAMPLES_ONLY, Difference, differ
from tests.finetune.score.simulated import MAKERS, Benchmark

NLI = TASKS["klue-nli"]


def rows_of(right_N: np.ndarray) -> list[Row]:
    return [Row(str(n), "neutral", "neutral" if right else "entailment") for n, right in enumerate(right_N)]


def two_models() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    hard_N = rng.normal(size=200)
    first, second = ((hard_N + quality + rng.normal(size=200) > 0).astype(float) for quality in (0.5, 0.9))
    return first, second


def test_the_paired_bootstrap_is_that_of_scipy() -> None:
    a, b = two_models()
    theirs = stats.bootstrap(
        (a, b), lambda x, y, axis=-1: 100 * (y.mean(axis) - x.mean(axis)), paired=True, n_resamples=4_000,
        rng=np.random.default_rng(1),
    )  # fmt: skip
    groups = [str(n) for n in range(200)]
    ours = [resample(NLI, {1: rows_of(side)}, groups, 4_000)["accuracy"] for side in (a, b)]
    found = differ(*ours)
    assert found is not None
    assert np.sqrt(found.example_variance) == pytest.approx(theirs.standard_error, rel=0.06)
    assert found.interval == pytest.approx(tuple(theirs.confidence_interval), abs=0.75)  # its ends are whole examples


def test_approximate_randomisation_is_the_permutation_test_of_scipy() -> None:
    a, b = two_models()
    theirs = stats.permutation_test(
        (a, b), lambda x, y, axis=-1: y.mean(axis) - x.mean(axis), permutation_type="samples", vectorized=True,
        n_resamples=9_999, rng=np.random.default_rng(1),
    )  # fmt: skip
    ours = randomize(NLI, [(rows_of(a), rows_of(b))], [str(n) for n in range(200)], 9_999)["accuracy"]
    assert 0.005 < theirs.pvalue < 0.5
    assert ours == pytest.approx(theirs.pvalue, rel=0.15)


def test_groups_are_resampled_and_swapped_whole() -> None:
    a, b = (np.repeat(side[:10], 20) for side in (np.zeros(10), np.array([1.0] * 6 + [0.0] * 4)))
    alone, together = [str(n) for n in range(200)], [str(n // 20) for n in range(200)]
    p_alone, p_together = (randomize(NLI, [(rows_of(a), rows_of(b))], g, 4_000)["accuracy"] for g in (alone, together))
    assert p_alone < 0.001
    assert p_together == pytest.approx(2 / 2**6, abs=0.01)  # of six coins all the same
    narrow, wide = (resample(NLI, {1: rows_of(b)}, g, 400)["accuracy"] for g in (alone, together))
    assert (narrow.groups, wide.groups) == (200, 10)
    assert wide.resampled_SB.std() > 3 * narrow.resampled_SB.std()


def test_two_models_with_the_same_predictions_do_not_differ() -> None:
    rows = rows_of(two_models()[0])
    assert randomize(NLI, [(rows, rows)], [row.guid for row in rows], 200) == {"accuracy": 1.0}


def test_results_repeat_and_do_not_depend_on_the_order_of_seeds() -> None:
    first, second = (rows_of(side) for side in two_models())
    groups = [row.guid for row in first]
    found = [resample(NLI, seeds, groups, 50)["accuracy"] for seeds in ({1: first, 2: second}, {2: second, 1: first})]
    assert found[0].seeds == found[1].seeds == (1, 2)
    assert (found[0].resampled_SB == found[1].resampled_SB).all()


def p_of_pair(name: str, quality: float, rng: np.random.Generator, seeds: int) -> float:
    """p of two models of a benchmark whose quality differs by ``quality``."""
    benchmark, task = Benchmark(rng, 250), TASKS[name]
    luck = 0.1 if seeds > 1 else 0.0  # one seed is tested as the training that it is, lucky or not
    a, b = (MAKERS[name](benchmark, seeds, 0.8 + more, luck) for more in (0.0, quality))
    groups, metric = [str(n) for n in range(250)], task.metrics[0]
    if seeds == 1:
        return randomize(task, [(a[1], b[1])], groups, 300)[metric]
    found: Difference | None = differ(*(resample(task, side, groups, 100)[metric] for side in (a, b)))
    assert found is not None and found.p is not None and found.test != EXAMPLES_ONLY
    return found.p


def test_equal_models_seldom_differ_and_unequal_ones_mostly_do() -> None:
    rng = np.random.default_rng(11)
    null, real = ([p_of_pair("ynat", quality, rng, 3) < 0.05 for _ in range(16)] for quality in (0.0, 0.8))
    assert sum(null) <= 4  # 1 expected
    assert sum(real) >= 12


@pytest.mark.matrix
@pytest.mark.parametrize("seeds", [1, 3, 5])
@pytest.mark.parametrize("name", sorted(MAKERS))
def test_of_200_equal_pairs_about_one_in_twenty_is_called_different(name: str, seeds: int) -> None:
    rng = np.random.default_rng(seeds)
    found = [p_of_pair(name, 0.0, rng, seeds) for _ in range(200)]
    power = np.mean([p_of_pair(name, 0.5, rng, seeds) < 0.05 for _ in range(50)])
    print(f"{name}, {seeds} seeds: false positives {np.mean(np.array(found) < 0.05):.3f}, found {power:.2f}")
    assert np.mean(np.array(found) < 0.05) <= 0.09
