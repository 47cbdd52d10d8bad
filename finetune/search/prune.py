"""Ending trials that fall behind: Optuna's median pruner, made a pure function of earlier rounds and one's own scores.

After each epoch but the last, a trial ends whose best evaluation so far is below the median of what the complete trials
of earlier rounds had after the same epoch. Trials of the same round do not count, so who was faster decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from statistics import median

from finetune.search.propose import Trial

STARTUP_TRIALS = 5  # as many complete ones before any is ended, as in Optuna
Limits = tuple[float, ...]  # by epoch, what the best so far must reach; () for none


def limits_of(earlier: Sequence[Trial]) -> Limits:
    """The medians by epoch over the complete trials among ``earlier``; epochs that none has had have no limit."""
    complete = [trial.by_epoch for trial in earlier if trial.state == "complete" and trial.by_epoch]
    if len(complete) < STARTUP_TRIALS:
        return ()
    longest = max(map(len, complete))
    return tuple(median(scores[epoch] for scores in complete if len(scores) > epoch) for epoch in range(longest))


def ends_after(by_epoch: Sequence[float], limits: Limits) -> int | None:
    """The number, from 1, of the epoch after which these scores end a trial; None: they do not.

    >>> ends_after([50.0, 51.0, 60.0], (49.0, 55.0, 58.0)), ends_after([50.0, 57.0], (49.0, 55.0))
    (2, None)
    """
    behind = (epoch for epoch, (best, limit) in enumerate(zip(accumulate(by_epoch, max), limits, strict=False), 1)
              if best < limit)  # fmt: skip
    return next(behind, None)
