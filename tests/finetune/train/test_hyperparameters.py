"""Published hyperparameters by task and size, and the paper's grid."""

from __future__ import annotations

from dataclasses import asdict
from itertools import islice

import pytest

from finetune.registry import TASKS
from finetune.task import Hyperparameters
from finetune.train.hyperparameters import PAPER_SPACE, SearchSpace, combinations, published

# KLUE-baseline run_all.sh: lr, epochs, batch size, warm-up, decay, longest input, parts of a step.
BASE = {
    "ynat": (5e-5, 4, 32, 0.1, 0.0, 128, 1),
    "klue-sts": (5e-5, 4, 32, 0.1, 0.0, 128, 1),
    "klue-nli": (5e-5, 5, 32, 0.1, 0.0, 128, 1),
    "klue-ner": (5e-5, 3, 32, 0.0, 0.0, 510, 1),
    "klue-re": (5e-5, 3, 32, 0.1, 0.0, 256, 1),
    "klue-dp": (5e-5, 10, 32, 0.1, 0.0, 256, 1),
    "klue-mrc": (3e-5, 5, 16, 0.0, 0.0, 510, 1),
    "wos": (3e-5, 5, 16, 0.1, 0.01, 510, 1),
}
LARGE = {
    "ynat": (5e-5, 4, 32, 0.2, 0.0, 128, 1),
    "klue-sts": (2e-5, 4, 32, 0.1, 0.0, 128, 1),
    "klue-nli": (5e-5, 5, 32, 0.2, 0.0, 128, 1),
    "klue-ner": (1e-5, 3, 8, 0.0, 0.0, 510, 1),
    "klue-re": (2e-5, 10, 16, 0.2, 0.0, 256, 1),
    "klue-dp": (5e-5, 15, 32, 0.2, 0.0, 256, 1),
    "klue-mrc": (3e-5, 5, 16, 0.0, 0.0, 510, 1),
    "wos": (2e-5, 5, 16, 0.1, 0.01, 510, 2),
}
FIELDS = ("lr", "epochs", "batch_size", "warmup_share", "weight_decay", "max_tokens", "accumulation")


@pytest.mark.parametrize(("hidden", "table"), [(312, BASE), (768, BASE), (1_024, LARGE), (1_536, LARGE)])
def test_each_task_and_size_gets_its_published_values(hidden: int, table: dict[str, tuple[float, ...]]) -> None:
    found = {name: asdict(published(task, hidden)) for name, task in TASKS.items()}
    assert {name: tuple(values[field] for field in FIELDS) for name, values in found.items()} == table


def test_published_values_lie_in_the_papers_grid_but_for_one() -> None:
    outside = {
        (name, size, field)
        for name, task in TASKS.items()
        for size in ("defaults", "large")
        for field in SearchSpace.__slots__
        if getattr(getattr(task, size), field) not in getattr(PAPER_SPACE, field)
    }
    assert outside == {("klue-dp", "large", "epochs")}


def test_every_combination_comes_once_in_an_order_drawn_by_seed() -> None:
    start = Hyperparameters(max_tokens=510, accumulation=2)
    found = list(combinations(start, 1))
    assert len(set(found)) == len(found) == 4 * 4 * 2 * 3 * 4
    assert {(values.max_tokens, values.accumulation) for values in found} == {(510, 2)}
    assert list(islice(combinations(start, 1), 20)) == found[:20]
    assert list(combinations(start, 2)) != found != sorted(found, key=found.index, reverse=True)
    assert len({values.lr for values in found[:20]}) == 4


def test_a_smaller_space_can_be_searched() -> None:
    space = SearchSpace((1e-5,), (0.1,), (0.0,), (16,), (3, 4))
    assert sorted(values.epochs for values in combinations(Hyperparameters(), 1, space)) == [3, 4]
