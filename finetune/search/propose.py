"""Which combinations a study tries: a pure function of the search and of the trials of earlier rounds.

The first n trials of a study are those of any longer study. Grid and random search do not look at results. TPE is asked
for one round at a time and knows the rounds before, so proposals depend on results alone, not on which trial finished
first; the cost is a smaller history than with one proposal at a time.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from finetune.config import SearchConfig, SearchValue
from finetune.search.grid import Values, digest_of, grid, random_values, search_values

State = Literal["complete", "pruned", "failed"]
UNDEFINED_SCORE = 0.0  # counted for a trial without a score: infinite loss, or undefined metric


class Trial(NamedTuple):
    """One combination and its result; ``score``: the last evaluation, None if there is none."""

    number: int
    values: Values
    state: State
    score: float | None
    by_epoch: tuple[float, ...] | None  # scores after each epoch, in a study that prunes
    seconds: float
    folder: str  # of its record
    reason: str | None = None  # of a failure

    @property
    def numeric_score(self) -> float:
        return as_number(self.score)


def as_number(score: float | None) -> float:
    """The score, ``UNDEFINED_SCORE`` if it is undefined."""
    return UNDEFINED_SCORE if score is None or math.isnan(score) else score


def propose(search: SearchConfig, numbers: range, earlier: Sequence[Trial]) -> list[Values]:
    """The combinations of one round of trials; ``earlier``: all trials before it, in order."""
    if search.method == "grid":
        return grid(search)[numbers.start : numbers.stop]
    if search.method == "random":
        return [random_values(search, number) for number in numbers]
    return _ask_tpe(search, numbers, earlier)


def _ask_tpe(search: SearchConfig, numbers: range, earlier: Sequence[Trial]) -> list[Values]:
    """Build a new Optuna study from the earlier trials; nothing else is kept between rounds."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    seed = int.from_bytes(digest_of(search.seed, numbers.start)[:4])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)  # constant_liar, in older releases
        sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    axes = {name: _axis(values) for name, values in search_values(search).items()}
    distributions = {name: _distribution(axis) for name, axis in axes.items()}
    for trial in earlier:
        study.add_trial(_as_optuna(trial, axes, distributions))
    asked = [study.ask(fixed_distributions=distributions) for _ in numbers]
    return [{name: axes[name][place] for name, place in trial.params.items()} for trial in asked]


def _axis(values: Sequence[SearchValue]) -> list[SearchValue]:
    """Sorted, so that the sampler can use that neighboring values are similar."""
    return sorted(values, key=lambda value: (isinstance(value, str), value))


def _distribution(axis: Sequence[SearchValue]) -> Any:
    """Positions on an axis: integers for numbers, otherwise categories."""
    from optuna.distributions import CategoricalDistribution, IntDistribution

    if any(isinstance(value, str | bool) for value in axis):
        return CategoricalDistribution(range(len(axis)))
    return IntDistribution(0, len(axis) - 1)


def _as_optuna(trial: Trial, axes: dict[str, list[SearchValue]], distributions: dict[str, Any]) -> Any:
    from optuna.trial import TrialState, create_trial

    return create_trial(
        state=TrialState.PRUNED if trial.state == "pruned" else TrialState.COMPLETE,
        value=trial.numeric_score,
        params={name: axis.index(trial.values[name]) for name, axis in axes.items()},
        distributions=distributions,
        intermediate_values=dict(enumerate(trial.by_epoch or ())),
    )
