"""The 95 % intervals of single results: how often they hold the truth, and their ends."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from finetune.examples import Row
from finetune.registry import TASKS
from finetune.score.bootstrap import SAMPLES, bootstrap
from finetune.score.significance import MANY, Part, interval_around, variance_of
from tests.finetune.score.simulated import MAKERS, Benchmark

NLI = TASKS["klue-nli"]


def answers(right: int, n: int) -> list[Row]:
    return [Row(str(i), "neutral", "neutral" if i < right else "entailment") for i in range(n)]


def alone(rows: list[Row]) -> list[str]:
    return [str(i) for i in range(len(rows))]


@pytest.mark.parametrize(("right", "n"), [(0, 50), (1, 20), (45, 50), (95, 100), (100, 100), (280, 400)])
def test_an_accuracy_has_the_interval_of_wilson(right: int, n: int) -> None:
    from statsmodels.stats.proportion import proportion_confint  # takes seconds

    rows = answers(right, n)
    expected = proportion_confint(right, n, method="wilson")
    found = bootstrap(NLI, rows, alone(rows), 2, seed=1)["accuracy"]
    assert found == pytest.approx([100 * end for end in expected], abs=1e-4)


def test_everything_right_or_wrong_is_no_empty_interval() -> None:
    rng = np.random.default_rng(1)
    for name in ("ynat", "klue-ner"):
        benchmark, task, maker = Benchmark(rng, 60), TASKS[name], MAKERS[name]
        for quality in (-40.0, 40.0):
            rows = maker(benchmark, 1, quality, 0.0)[1]
            for interval in bootstrap(task, rows, alone(rows), 20, seed=1).values():
                assert interval is None or interval[1] - interval[0] > 0.5
    dialogues = [Row(f"w{n // 5}-{n % 5}", [], []) for n in range(100)]
    low, high = bootstrap(TASKS["wos"], dialogues, [row.guid[:-2] for row in dialogues], 20, seed=1)["joint_goal_acc"]
    assert (round(low, 1), high) == (83.9, 100)  # of 20 dialogues


def test_a_correlation_of_normal_pairs_has_the_interval_of_fisher() -> None:
    r, error = 0.6, 1 / math.sqrt(97)
    part = Part((100 * (1 - r * r) * error) ** 2, MANY)
    expected = [100 * math.tanh(math.atanh(r) + sign * 1.96 * error) for sign in (-1, 1)]
    assert interval_around(60.0, [part], 100, "pearsonr") == pytest.approx(expected, abs=0.01)
    narrow, far = interval_around(100.0, [], 100, "pearsonr")
    assert 97 < narrow < 99 and far == 100.0


@pytest.mark.parametrize(("metric", "value"), [("f1", 3.0), ("f1", 52.0), ("f1", 99.0), ("pearsonr", -40.0)])
def test_the_variance_of_an_interval_is_found_again(metric: str, value: float) -> None:
    interval = interval_around(value, [Part(2.5, MANY)], 100, metric)
    floor = ((100 - value**2 / 100) ** 2) / 97 if metric == "pearsonr" else 0.0
    assert variance_of(value, interval, metric) == pytest.approx(max(2.5, floor), rel=1e-3)
    assert variance_of(100.0, (96.3, 100.0), "f1") == variance_of(0.0, (0.0, 3.7), "f1") == 0.0


def accuracies(rng: np.random.Generator, n: int, share: float) -> tuple[list[Row], list[str], float]:
    """Rows, groups and the truth, which differs a little from time to time: counts of right answers are whole numbers,
    so that at one truth the coverage of any interval is a matter of luck (93.5 to 97.0 % for n = 50)."""
    truth = share + rng.uniform(-0.02, 0.02)
    rows = answers(int(rng.binomial(n, truth)), n)
    return rows, alone(rows), 100 * truth


def dialogues(rng: np.random.Generator, n: int, share: float) -> tuple[list[Row], list[str], float]:
    """``n`` dialogues of 2 to 12 turns; the turns of one are right together."""
    luck_N, turns_N = rng.normal(size=n), rng.integers(2, 13, size=n)
    state, rows = ["택시-도착지-역"], []
    for number, (luck, turns) in enumerate(zip(luck_N, turns_N, strict=True)):
        right_T = luck + rng.normal(size=turns) < math.sqrt(2) * stats.norm.ppf(share)
        rows += [Row(f"w{number}-{t}", state, state if right else []) for t, right in enumerate(right_T)]
    return rows, [row.guid.rpartition("-")[0] for row in rows], 100 * share


def simulated(name: str, quality: float) -> Callable[..., tuple[list[Row], list[str], float]]:
    task = TASKS[name]
    many = MAKERS[name](Benchmark(np.random.default_rng(99), 100_000), 1, quality, 0.0)[1]
    truth = task.score(many)[task.metrics[0]]

    def draw(rng: np.random.Generator, n: int, _: float) -> tuple[list[Row], list[str], float]:
        rows = MAKERS[name](Benchmark(rng, n), 1, quality, 0.0)[1]
        return rows, alone(rows), truth

    return draw


def normal_pairs(rng: np.random.Generator, n: int, r: float) -> tuple[list[Row], list[str], float]:
    x_N, noise_N = rng.normal(size=(2, n))
    rows = [
        Row("", *pair) for pair in zip(x_N.tolist(), (r * x_N + math.sqrt(1 - r * r) * noise_N).tolist(), strict=True)
    ]
    return rows, alone(rows), 100 * r


CASES = {
    "accuracy .95": ("klue-nli", accuracies, 0.95), "accuracy .9": ("klue-nli", accuracies, 0.9),
    "accuracy .7": ("klue-nli", accuracies, 0.7), "joint goal accuracy .5": ("wos", dialogues, 0.5),
    "joint goal accuracy .1": ("wos", dialogues, 0.1), "macro F1 70": ("ynat", simulated("ynat", 0.8), 0.0),
    "entity F1 80": ("klue-ner", simulated("klue-ner", 0.8), 0.0),
    "Pearson .5": ("klue-sts", normal_pairs, 0.5), "Pearson .83": ("klue-sts", normal_pairs, 0.83),
    "Pearson 38": ("klue-sts", simulated("klue-sts", -3.0), 0.0),
    "Pearson 83, heavy tails": ("klue-sts", simulated("klue-sts", 0.8), 0.0),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n"), [(name, n) for name in CASES for n in (50, 104, 400) if n < 400 or CASES[name][1] is not dialogues]
)
def test_intervals_hold_the_truth_in_about_95_of_100_cases(name: str, n: int) -> None:
    task_name, make, share = CASES[name]
    rng, task, times, held = np.random.default_rng(n), TASKS[task_name], 120, 0
    for number in range(times):
        rows, groups, truth = make(rng, n, share)
        low, high = bootstrap(task, rows, groups, SAMPLES, number)[next(iter(task.score(rows)))] or (0, 0)
        held += low <= truth <= high
    print(f"| {name} | {n} | {100 * held / times:.1f} |")
    assert held / times >= (0.86 if "heavy" in name else 0.88)  # two standard deviations of 120 draws are 0.04
