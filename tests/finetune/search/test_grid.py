"""What a study tries: the paper's grid, longer studies as continued shorter ones, and sentences for bad spaces."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import optuna
import pytest
from pydantic import ValidationError

from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig, SearchConfig
from finetune.search.grid import PAPER_GRID, Trial, Values, grid, propose, round_size, search_values, trial_count
from finetune.search.study import limits_of, trial_config
from finetune.task_names import TASK_NAMES


def trial(number: int, values: Values, score: float, by_epoch: Sequence[float] | None = None) -> Trial:
    return Trial(number, values, "complete", score, None if by_epoch is None else tuple(by_epoch), 1.0, "trial-0")


def study(search: SearchConfig, size: int) -> list[Values]:
    """All proposals of a study whose scores favour high rates and few epochs."""
    trials: list[Trial] = []
    for first in range(0, size, round_size(search)):
        numbers = range(first, min(first + round_size(search), size))
        for number, values in zip(numbers, propose(search, numbers, trials), strict=True):
            trials.append(trial(number, values, 1e6 * float(values["lr"]) - float(values["epochs"])))
    return [trial.values for trial in trials]


def test_the_default_is_the_grid_of_the_paper() -> None:
    paper = product((1e-5, 2e-5, 3e-5, 5e-5), (0, 0.1, 0.2, 0.6), (0, 0.01), (8, 16, 32), (3, 4, 5, 10))  # section 5.2
    names = ("lr", "warmup_share", "weight_decay", "batch_size", "epochs")
    config = FinetuneConfig()
    combinations = grid(config.search)
    assert len(combinations) == trial_count(config.search) == 384
    assert {tuple(c[name] for name in names) for c in combinations} == set(paper)
    lengths = {task: trial_config(config, task).overrides[task].max_tokens for task in TASK_NAMES}
    assert lengths == {task: 512 if task in ("klue-mrc", "wos") else 128 for task in TASK_NAMES}


@pytest.mark.parametrize("method", ["grid", "random", "tpe"])
def test_a_longer_study_begins_with_the_shorter_one(method: Any) -> None:
    short, long = (SearchConfig(method=method, trials=n) for n in (14, 30))
    assert study(long, 30)[:14] == study(short, 14)
    assert study(long.model_copy(update={"seed": 1}), 14) != study(short, 14)


def test_a_grid_ends_and_has_no_combination_twice_where_random_search_may() -> None:
    search = SearchConfig(trials=400, space={"lr": (1e-5,), "epochs": (3,)})
    found = propose(search, range(trial_count(search)), [])
    assert len({tuple(c.values()) for c in found}) == len(found) == 4 * 2 * 3
    drawn = study(SearchConfig(method="random", trials=200), 200)
    assert 120 < len({tuple(c.values()) for c in drawn}) < 190  # about 156 of 384 are expected


def test_tpe_learns_which_values_score_well() -> None:
    best = {"lr": 5e-5, "epochs": 3}
    hits = [
        sum(all(values[name] == value for name, value in best.items()) for values in study(search, 60)[20:])
        for search in (SearchConfig(method=m, trials=60) for m in ("random", "tpe"))
    ]
    assert hits[1] > 2 * hits[0] and hits[1] > 10


def test_limits_are_those_of_the_median_pruner() -> None:
    histories = [[40.0, 50.0, 55.0], [45.0, 46.0], [30.0, 60.0, 61.0, 62.0], [41.0, 52.0, 50.0], [20.0, 48.0, 70.0]]
    earlier = [trial(n, {}, scores[-1], scores) for n, scores in enumerate(histories)]
    limits = limits_of(earlier)
    assert limits_of(earlier[:4]) == ()
    for scores in ([39.0], [39.0, 51.0], [45.0, 30.0, 30.0], [40.0, 50.0, 57.0, 61.0], [40.0, 40.0, 40.0, 40.0, 10.0]):
        stock = optuna.create_study(direction="maximize", pruner=optuna.pruners.MedianPruner())
        for number, history in enumerate(histories):
            stock.add_trial(optuna.trial.create_trial(
                value=histories[number][-1], intermediate_values=dict(enumerate(history)),
            ))  # fmt: skip
        asked = stock.ask()
        for epoch, score in enumerate(scores):
            asked.report(score, epoch)
        limit = limits[len(scores) - 1] if len(scores) <= len(limits) else float("-inf")
        assert (max(scores) < limit) == asked.should_prune()


@pytest.mark.parametrize(
    ("search", "said"),
    [
        (
            {"space": {"learning_rate": [1e-4]}},
            "learning_rate: no such hyperparameter; there are ",
        ),
        ({"space": {"epoch": [1]}}, "epoch: no such hyperparameter; did you mean epochs?"),
        ({"space": {"lr": [1e-4, "fast"]}}, "lr: fast: Input should be a valid number"),
        ({"space": {"lr": [-1e-4]}}, "lr: -0.0001: Input should be greater than 0"),
        ({"space": {"lr": [1e-4, "1e-4"]}}, "lr: list at least one value, and each once"),
        ({"space": {"epochs": []}}, "epochs: list at least one value, and each once"),
        (
            {"space": {"batch_size": [8.5]}},
            "batch_size: 8.5: Input should be a valid integer",
        ),
        ({"method": "tpe"}, "method tpe needs a number of trials, for example trials: 40"),
        ({"method": "bayes"}, "Input should be 'grid', 'random' or 'tpe'"),
    ],
)
def test_bad_spaces_get_a_sentence(search: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as error:
        FinetuneConfig(search=search)
    assert said in str(error.value) and len(error.value.errors()) == 1


def test_one_value_and_text_from_the_command_line_are_read() -> None:
    search = FinetuneConfig(search={"space": {"lr": ["1e-4", "3e-4"], "epochs": 2, "batch_size": None}}).search
    values = search_values(search)
    assert values["lr"] == (1e-4, 3e-4) and values["epochs"] == (2,) and "batch_size" not in values


def test_a_search_without_hyperparameters_is_refused() -> None:
    search = SearchConfig(space=dict.fromkeys(PAPER_GRID))
    with pytest.raises(BadInput, match=r"finetune\.search\.space: nothing to search"):
        search_values(search)
