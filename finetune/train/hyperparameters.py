"""Which published hyperparameters a model gets, and the values that the paper searched (section 5.2).

The values themselves stand with the tasks (``Task.defaults``, ``Task.large``). The published configurations
(KLUE-baseline, run_all.sh) lie in the paper's grid but for the exceptions named here; the search is not done here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
PAPER_MAX_TOKENS: Mapping[str, int] = {"klue-mrc": 512, "wos": 512}  # 128 in the other tasks
OTHER_MAX_TOKENS = 128

# (task, "defaults" or "large") to the fields of the published configuration that lie outside the paper's values.
OUTSIDE_THE_PAPER: Mapping[tuple[str, str], frozenset[str]] = {
    ("klue-ner", "defaults"): frozenset({"max_tokens"}),  # 510; the longest dev sentence has 89
    ("klue-ner", "large"): frozenset({"max_tokens"}),
    ("klue-re", "defaults"): frozenset({"max_tokens"}),  # 256
    ("klue-re", "large"): frozenset({"max_tokens"}),
    ("klue-dp", "defaults"): frozenset({"max_tokens"}),  # 256
    ("klue-dp", "large"): frozenset({"max_tokens", "epochs"}),  # 15 epochs
    ("klue-mrc", "defaults"): frozenset({"max_tokens"}),  # 510, as RoBERTa's first checkpoints took no more; BERT 512
    ("klue-mrc", "large"): frozenset({"max_tokens"}),
    ("wos", "defaults"): frozenset({"max_tokens"}),
    ("wos", "large"): frozenset({"max_tokens"}),
}


def paper_max_tokens(task: str) -> int:
    """Longest input that section 5.2 names for a task."""
    return PAPER_MAX_TOKENS.get(task, OTHER_MAX_TOKENS)


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
