"""Which combinations a study tries: the grid of paper section 5.2 (384) with the recipe's changes, random draws, TPE.

The first n trials of a study are those of any longer study. TPE is asked for one round at a time and knows the rounds
before, so proposals depend on results alone, not on which trial finished first. The paper selected the best combination
on dev, which it then reports; here a held-out part of train selects, unless the recipe asks for dev.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import warnings
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, Literal, NamedTuple

from corpus.documents.errors import BadInput
from finetune.config import SearchConfig, SearchValue

State = Literal["complete", "pruned", "failed"]
UNDEFINED_SCORE = 0.0  # counted for a trial without a score: infinite loss, or undefined metric
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
    combinations = math.prod(map(len, search_values(search).values()))
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
