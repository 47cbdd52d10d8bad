"""Which published hyperparameters a model gets, and the values that the paper searched (section 5.2).

The values themselves stand with the tasks (``Task.defaults``, ``Task.large``; KLUE-baseline, run_all.sh). They lie in
the paper's grid but for lengths and for the 15 epochs of large models on KLUE-DP; the search is not done here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from random import Random

from finetune.task import Hyperparameters, Task

LARGE_HIDDEN = 1_024


def published(task: Task, hidden_size: int) -> Hyperparameters:
    """The published configuration for an encoder so wide: one for small and base models, one for large ones."""
    return task.large if hidden_size >= LARGE_HIDDEN else task.defaults


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """Values of each hyperparameter that the paper tried (5.2); the best on dev was reported."""

    lr: tuple[float, ...] = (1e-5, 2e-5, 3e-5, 5e-5)
    warmup_share: tuple[float, ...] = (0.0, 0.1, 0.2, 0.6)
    weight_decay: tuple[float, ...] = (0.0, 0.01)
    batch_size: tuple[int, ...] = (8, 16, 32)
    epochs: tuple[int, ...] = (3, 4, 5, 10)


PAPER_SPACE = SearchSpace()


def combinations(start: Hyperparameters, seed: int, space: SearchSpace = PAPER_SPACE) -> Iterator[Hyperparameters]:
    """Every combination of the space once (384 of the paper's), in an order drawn by seed.

    The first so many are therefore a random search, and a longer search only adds to a shorter one.

    Args:
        start: gives the fields that the space leaves alone (length, accumulation).
    """
    names = SearchSpace.__slots__
    found = list(product(*(getattr(space, name) for name in names)))
    Random(f"search space:{seed}").shuffle(found)
    for values in found:
        yield replace(start, **dict(zip(names, values, strict=True)))
