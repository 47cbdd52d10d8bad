"""A small speedrun for tests: a tiny size, a budget of about twenty steps, two candidates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.speedrun.budget import Budget
from benchmarks.speedrun.candidate_run import RunSettings
from benchmarks.speedrun.candidates import read_candidates
from benchmarks.speedrun.run import Rules
from benchmarks.speedrun.setup import Text

SIZE = "1x64"
BUDGET = Budget("operations", 3e9)
RULES = Rules(BUDGET, "fp32", 4, 16)
OURS = "paper: paper pretrain.global_batch=4"
THEIRS = "trainer: trainer pretrain.global_batch=4"
PIECES = 300  # of the vocabulary


def settings_of_run(text: Text, command: str, model: Path, budget: Budget = BUDGET, points: int = 4) -> dict[str, Any]:
    [candidate] = read_candidates([command], SIZE, "fp32")
    return RunSettings(
        side=candidate.side, config=candidate.config, training=text.training, held_out=text.held_out,
        tokenizer=text.tokenizer, budget=budget, points=points, rows=16, model=model,
    ).model_dump(mode="json")  # fmt: skip
