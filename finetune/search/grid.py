"""Which combinations a study tries: the grid of paper section 5.2 (384) with the recipe's changes, or random draws.

The first n trials of a study are those of any longer study. The paper selected the best combination on dev, which it
then reports; here a held-out part of train selects, unless the recipe asks for dev.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Mapping, Sequence
from itertools import product

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


def search_values(search: SearchConfig) -> dict[str, tuple[SearchValue, ...]]:
    """The values of each hyperparameter: the paper's grid, replaced by ``space``. The order depends on names alone."""
    merged = {**PAPER_GRID, **{key: search.space[key] for key in sorted(search.space)}}
    values = {key: values for key, values in merged.items() if values is not None}
    if not values:
        raise BadInput("finetune.search.space: nothing to search; give at least one hyperparameter a list of values")
    return values


def trial_count(search: SearchConfig) -> int:
    """Number of trials of a study."""
    size = math.prod(map(len, search_values(search).values()))
    trials = search.trials or size
    return min(trials, size) if search.method == "grid" else trials


def fixed_values(search: SearchConfig, task: str, *, is_custom: bool) -> dict[str, SearchValue]:
    """The paper's maximum input length, which is not part of the grid; custom tasks have none."""
    if is_custom or "max_tokens" in search.space:
        return {}
    return {"max_tokens": PAPER_MAX_TOKENS.get(task, OTHER_MAX_TOKENS)}


def combinations(search: SearchConfig) -> Sequence[Values]:
    """The combination of each trial: every one once, in an order drawn by seed, or independent draws, which may
    repeat."""
    space, count = search_values(search), trial_count(search)
    if search.method == "random":
        generators = (random.Random(f"{search.seed}:{number}") for number in range(count))
        return [{name: rng.choice(values) for name, values in space.items()} for rng in generators]
    every = [dict(zip(space, values, strict=True)) for values in product(*space.values())]
    return sorted(every, key=lambda values: _digest(search.seed, values))[:count]


def _digest(seed: int, values: Values) -> bytes:
    return hashlib.blake2b(json.dumps([seed, values], sort_keys=True).encode(), digest_size=8).digest()
