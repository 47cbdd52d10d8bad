"""What the tests of the speedrun race over: a tiny size, a budget of some twenty steps, one contestant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.speedrun.arena import Text
from benchmarks.speedrun.contestants import read_contestants
from benchmarks.speedrun.pace import Budget
from benchmarks.speedrun.race import Order
from benchmarks.speedrun.run import Rules

SIZE = "1x64"
BUDGET = Budget("operations", 3e9)
RULES = Rules(BUDGET, 1, "fp32", 4, 16)
OURS = "paper: paper pretrain.global_batch=4"
THEIRS = "trainer: trainer pretrain.global_batch=4"
PIECES = 300  # of the vocabulary


def order_of(text: Text, told: str, model: Path, budget: Budget = BUDGET, points: int = 4) -> dict[str, Any]:
    [contestant] = read_contestants([told], SIZE, "fp32")
    return Order(
        side=contestant.side, config=contestant.config, training=text.training, held_out=text.held_out,
        tokenizer=text.tokenizer, budget=budget, points=points, rows=16, threads=1, model=model,
    ).model_dump(mode="json")  # fmt: skip
