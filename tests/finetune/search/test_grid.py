"""What a study tries: the paper's grid, longer studies as continued shorter ones, and sentences for bad spaces."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from pydantic import ValidationError

from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig, SearchConfig
from finetune.search.grid import PAPER_GRID, combinations, fixed_values, search_values, trial_count
from finetune.search.run import trial_config
from finetune.task_names import TASK_NAMES


def test_the_default_is_the_grid_of_the_paper() -> None:
    paper = product((1e-5, 2e-5, 3e-5, 5e-5), (0, 0.1, 0.2, 0.6), (0, 0.01), (8, 16, 32), (3, 4, 5, 10))  # section 5.2
    names = ("lr", "warmup_share", "weight_decay", "batch_size", "epochs")
    config = FinetuneConfig()
    tried = combinations(config.search)
    assert len(tried) == trial_count(config.search) == 384
    assert {tuple(c[name] for name in names) for c in tried} == set(paper)
    lengths = {task: trial_config(config, task).overrides[task].max_tokens for task in TASK_NAMES}
    assert lengths == {task: 512 if task in ("klue-mrc", "wos") else 128 for task in TASK_NAMES}


@pytest.mark.parametrize("method", ["grid", "random"])
def test_a_longer_study_begins_with_the_shorter_one(method: Any) -> None:
    short, long = (SearchConfig(method=method, trials=n) for n in (14, 30))
    assert combinations(long)[:14] == combinations(short)
    assert combinations(short.model_copy(update={"seed": 1})) != combinations(short)


def test_a_grid_ends_and_has_no_combination_twice_where_random_search_may() -> None:
    found = combinations(SearchConfig(trials=400, space={"lr": (1e-5,), "epochs": (3,)}))
    assert len({tuple(c.values()) for c in found}) == len(found) == 4 * 2 * 3
    drawn = combinations(SearchConfig(method="random", trials=200))
    assert 120 < len({tuple(c.values()) for c in drawn}) < 190  # about 156 of 384 are expected


@pytest.mark.parametrize(
    ("search", "said"),
    [
        (
            {"space": {"learning_rate": [1e-4]}},
            "learning_rate: no such hyperparameter; there are ",
        ),
        ({"space": {"epoch": [1]}}, "epoch: no such hyperparameter; did you mean epochs?"),
        ({"space": {"lr": [1e-4, "fast"]}}, "lr: fast: must be a number"),
        ({"space": {"lr": [-1e-4]}}, "lr: -0.0001: must be greater than 0"),
        ({"space": {"lr": [1e-4, "1e-4"]}}, "lr: list at least one value, and each once"),
        ({"space": {"epochs": []}}, "epochs: list at least one value, and each once"),
        (
            {"space": {"batch_size": [8.5]}},
            "batch_size: 8.5: must be a whole number",
        ),
        ({"method": "random"}, "method random needs a number of trials, for example trials: 40"),
        ({"method": "tpe", "trials": 9}, "tpe was removed: use random"),
        ({"prunes": True}, "prunes was removed: every trial is trained to its end"),
        ({"method": "bayes"}, "Input should be 'grid' or 'random'"),
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


@pytest.mark.parametrize(
    ("method", "trials", "count"),
    [
        ("grid", None, 6), ("grid", 1, 1), ("grid", 5, 5), ("grid", 6, 6), ("grid", 7, 6),
        ("random", 1, 1), ("random", 7, 7),
    ],
)  # fmt: skip
def test_a_grid_has_no_more_trials_than_combinations(method: Any, trials: int | None, count: int) -> None:
    space = dict.fromkeys(PAPER_GRID) | {"lr": (1e-5, 2e-5, 3e-5), "epochs": (1, 2)}
    search = SearchConfig(method=method, trials=trials, space=space)
    assert trial_count(search) == len(combinations(search)) == count


@pytest.mark.parametrize(
    ("task", "is_custom", "space", "length"),
    [
        ("klue-mrc", False, {}, 512), ("wos", False, {}, 512), ("ynat", False, {}, 128), ("ynat", True, {}, None),
        ("ynat", False, {"max_tokens": (64, 96)}, None), ("mine", True, {"max_tokens": (64, 96)}, None),
    ],
)  # fmt: skip
def test_inputs_have_the_papers_length_unless_it_is_searched(
    task: str, is_custom: bool, space: dict[str, Any], length: int | None
) -> None:
    fixed = fixed_values(SearchConfig(space=space), task, is_custom=is_custom)
    assert fixed == ({} if length is None else {"max_tokens": length})
