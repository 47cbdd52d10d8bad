"""Which combinations a study tries, by number: a pure function of the search and of the trials of earlier rounds.

The first n trials of a study are those of any longer one. Grid and random search draw each number on its own; TPE is
asked one after the other within a round, and knows the rounds before it, so its proposals depend on results alone, not
on which of them came first. The price: a smaller history than a proposal at a time would have.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import warnings
from collections.abc import Sequence
from itertools import product
from typing import Any, Literal, NamedTuple

from finetune.sections.spaces import SearchConfig, Value, Values

State = Literal["complete", "pruned", "failed"]
LOWEST = 0.0  # what a trial counts that has no score: its loss became infinite, or the metric is undefined


class Trial(NamedTuple):
    """A combination and what came of it; ``score``: the last evaluation, None where there is none."""

    number: int
    values: Values
    state: State
    score: float | None
    by_epoch: tuple[float, ...] | None  # scores after each epoch of a study that prunes
    seconds: float
    folder: str  # of its record
    reason: str | None = None  # of a failure

    @property
    def counts(self) -> float:
        """The score as a number."""
        return number(self.score)


def number(score: float | None) -> float:
    """A score, ``LOWEST`` where it is undefined."""
    return LOWEST if score is None or math.isnan(score) else score


def propose(search: SearchConfig, numbers: range, earlier: Sequence[Trial]) -> list[Values]:
    """The combinations of these trials, which are one round; ``earlier``: all trials before them, in their order."""
    if search.method == "grid":
        return grid(search)[numbers.start : numbers.stop]
    if search.method == "random":
        return [_draw(search, number) for number in numbers]
    return _ask_tpe(search, numbers, earlier)


def grid(search: SearchConfig) -> list[Values]:
    """Every combination once, in an order drawn by seed."""
    names, values = search.values.keys(), search.values.values()
    combinations = [dict(zip(names, combination, strict=True)) for combination in product(*values)]
    return sorted(combinations, key=lambda combination: _digest(search.seed, combination))


def _draw(search: SearchConfig, number: int) -> Values:
    rng = random.Random(f"{search.seed}:{number}")
    return {name: rng.choice(values) for name, values in search.values.items()}


def _digest(*parts: Any) -> bytes:
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=8).digest()


def _ask_tpe(search: SearchConfig, numbers: range, earlier: Sequence[Trial]) -> list[Values]:
    """A new study each round, told of the trials before: nothing but their results is kept between rounds."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    seed = int.from_bytes(_digest(search.seed, numbers.start)[:4])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)  # constant_liar, in older releases
        sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    axes = {name: _axis(values) for name, values in search.values.items()}
    distributions = {name: _distribution(axis) for name, axis in axes.items()}
    for trial in earlier:
        study.add_trial(_as_optuna(trial, axes, distributions))
    asked = [study.ask(fixed_distributions=distributions) for _ in numbers]
    return [{name: axes[name][place] for name, place in trial.params.items()} for trial in asked]


def _axis(values: Sequence[Value]) -> list[Value]:
    """Numbers in their order, so that what is learnt of one says something of its neighbours."""
    return sorted(values, key=lambda value: (isinstance(value, str), value))


def _distribution(axis: Sequence[Value]) -> Any:
    """Places on an axis: of numbers in order, else as categories."""
    from optuna.distributions import CategoricalDistribution, IntDistribution

    if any(isinstance(value, str | bool) for value in axis):
        return CategoricalDistribution(range(len(axis)))
    return IntDistribution(0, len(axis) - 1)


def _as_optuna(trial: Trial, axes: dict[str, list[Value]], distributions: dict[str, Any]) -> Any:
    from optuna.trial import TrialState, create_trial

    return create_trial(
        state=TrialState.PRUNED if trial.state == "pruned" else TrialState.COMPLETE,
        value=trial.counts,
        params={name: axis.index(trial.values[name]) for name, axis in axes.items()},
        distributions=distributions,
        intermediate_values=dict(enumerate(trial.by_epoch or ())),
    )
