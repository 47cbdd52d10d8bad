"""The grid of paper section 5.2 (384 combinations) and what a recipe changes in it; grid order and random draws.

The paper selected the best of the 384 combinations on dev, which it then reports. Here a held-out part of train
selects, unless the recipe asks for dev; every score says which. A longer study starts with the
combinations of a shorter one.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping
from itertools import product
from math import prod
from typing import Any

from corpus.documents.errors import BadInput
from finetune.config import SearchConfig, SearchValue

Values = Mapping[str, SearchValue]  # one combination: hyperparameter to value
PAPER_GRID: dict[str, tuple[SearchValue, ...]] = {  # 4 x 4 x 2 x 3 x 4 = 384
    "lr": (1e-5, 2e-5, 3e-5, 5e-5),
    "warmup_share": (0.0, 0.1, 0.2, 0.6),
    "weight_decay": (0.0, 0.01),
    "batch_size": (8, 16, 32),
    "epochs": (3, 4, 5, 10),
}
PAPER_MAX_TOKENS = {"klue-mrc": 512, "wos": 512}
OTHER_MAX_TOKENS = 128  # of the other KLUE tasks
TRIALS_PER_ROUND = 8  # proposed together by TPE; they know the trials of earlier rounds


def search_values(search: SearchConfig) -> dict[str, tuple[SearchValue, ...]]:
    """The values of each hyperparameter: the paper's grid, replaced by ``space``. The order depends on names alone."""
    merged = {**PAPER_GRID, **{key: search.space[key] for key in sorted(search.space)}}
    values = {key: values for key, values in merged.items() if values is not None}
    if not values:
        raise BadInput("finetune.search.space: nothing to search; give at least one hyperparameter a list of values")
    return values


def trial_count(search: SearchConfig) -> int:
    """Number of trials of a study."""
    combinations = prod(map(len, search_values(search).values()))
    trials = search.trials or combinations
    return min(trials, combinations) if search.method == "grid" else trials


def round_size(search: SearchConfig) -> int:
    """Number of trials proposed together: all, if none depends on the result of another."""
    count = trial_count(search)
    return min(count, TRIALS_PER_ROUND) if search.prunes or search.method == "tpe" else count


def fixed_values(search: SearchConfig, task: str, *, is_custom: bool) -> dict[str, SearchValue]:
    """The paper's maximum input length, which is not part of the grid; custom tasks have none."""
    if is_custom or "max_tokens" in search.space:
        return {}
    return {"max_tokens": PAPER_MAX_TOKENS.get(task, OTHER_MAX_TOKENS)}


def grid(search: SearchConfig) -> list[Values]:
    """Every combination once, in an order drawn by seed."""
    names, values = zip(*search_values(search).items(), strict=True)
    combinations = [dict(zip(names, combination, strict=True)) for combination in product(*values)]
    return sorted(combinations, key=lambda combination: digest_of(search.seed, combination))


def random_values(search: SearchConfig, number: int) -> Values:
    """The combination of random trial ``number``; combinations may repeat."""
    rng = random.Random(f"{search.seed}:{number}")
    return {name: rng.choice(values) for name, values in search_values(search).items()}


def digest_of(*parts: Any) -> bytes:
    """Eight bytes that depend on the parts alone."""
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=8).digest()
