"""What a search of hyperparameters tries: the grid of paper 5.2 as it stands, or own values of any hyperparameter.

The paper's best of 384 combinations was chosen on dev, which it then reports. Here a part of train chooses, unless the
recipe asks for dev; either way every score says which.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Literal

from pydantic import Field, field_validator, model_validator

from corpus.documents.section import Section

Value = int | float | bool | str
Values = Mapping[str, Value]  # hyperparameter to value
PAPER_GRID: dict[str, tuple[Value, ...]] = {  # paper 5.2: 4 x 4 x 2 x 3 x 4 = 384
    "lr": (1e-5, 2e-5, 3e-5, 5e-5),
    "warmup_share": (0.0, 0.1, 0.2, 0.6),
    "weight_decay": (0.0, 0.01),
    "batch_size": (8, 16, 32),
    "epochs": (3, 4, 5, 10),
}
PAPER_MAX_TOKENS = {"klue-mrc": 512, "wos": 512}
OTHER_MAX_TOKENS = 128  # of KLUE's other tasks


def _several(values: object) -> object:
    """One value for a list of it: ``batch_size: 16``."""
    is_one = isinstance(values, int | float) or (isinstance(values, str) and "," not in values)
    return (values,) if is_one else values


class SearchConfig(Section):
    """One study for each task and encoder; a longer study begins with the trials of the shorter one."""

    method: Literal["grid", "random", "tpe"] = Field(
        "grid",
        description="grid: every combination once, in an order drawn by seed; random: each value drawn on its own, so "
        "combinations may repeat; tpe: Optuna's estimator proposes (extra `search`).",
    )
    trials: int | None = Field(None, gt=0, description="Combinations to try; none: the whole grid.")
    seed: int = Field(42, description="Draws combinations; trainings take the first of finetune.seeds.")
    space: dict[str, tuple[Value, ...] | None] = Field(
        default_factory=dict,
        description="Hyperparameter to its values; those of paper 5.2 that are not named keep the paper's, null leaves "
        "one as the recipe says.",
    )
    select_on: Literal["train", "dev"] = Field(
        "train", description="What chooses: a part of train that no trial trains on, or dev as in the paper."
    )
    held_out_share: float = Field(0.2, gt=0, lt=1, description="Of the training examples: share that chooses.")
    prunes: bool = Field(
        False, description="Ends a trial whose best evaluation so far is below the median of earlier trials' (Optuna's "
        "median pruner, after each epoch).",
    )  # fmt: skip
    trials_per_round: int = Field(
        8, gt=0, description="tpe and prunes: trials proposed at a time; they know those of earlier rounds, no others."
    )

    @field_validator("space", mode="before")
    @classmethod
    def _lists(cls, space: object) -> object:
        return {key: _several(values) for key, values in space.items()} if isinstance(space, dict) else space

    @model_validator(mode="after")
    def _knows_its_length(self) -> SearchConfig:
        if self.method != "grid" and self.trials is None:
            raise ValueError(f"trials: method {self.method} has no end of its own; say how many, as trials: 40")
        if not self.values:
            raise ValueError("space: nothing is left to search; give at least one hyperparameter values")
        return self

    @property
    def values(self) -> dict[str, tuple[Value, ...]]:
        """Hyperparameter to its values, in an order of their names alone: the paper's, ``space`` in their place."""
        found = {**PAPER_GRID, **{key: self.space[key] for key in sorted(self.space)}}
        return {key: values for key, values in found.items() if values is not None}

    @property
    def size(self) -> int:
        """How many trials a study has."""
        combinations = prod(map(len, self.values.values()))
        wanted = self.trials or combinations
        return min(wanted, combinations) if self.method == "grid" else wanted

    @property
    def round_size(self) -> int:
        """How many trials are proposed at a time: all, where none depends on another."""
        return min(self.size, self.trials_per_round if self.prunes or self.method == "tpe" else self.size)

    def fixed(self, task: str, *, is_own: bool) -> dict[str, Value]:
        """Besides the grid, the paper's longest input, unless ``space`` says otherwise; own tasks have none."""
        if is_own or "max_tokens" in self.space:
            return {}
        return {"max_tokens": PAPER_MAX_TOKENS.get(task, OTHER_MAX_TOKENS)}
