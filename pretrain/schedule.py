"""What changes over the steps of a run: learning rate, row length and masked share.

Everything here is a pure function of the settings and the step, so nothing has to be saved.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

from pretrain.config import DECAY_SHARE, PretrainConfig


class Phase(NamedTuple):
    """Steps whose batches have one shape: from ``after`` + 1 to ``last``."""

    length: int  # tokens of a row
    share: float  # of them to predict
    after: int
    last: int
    length_after: int  # the step before the first rows of this length; they are counted from there


def phases(config: PretrainConfig) -> list[Phase]:
    """The phases of a run in order: a new one where the row length or the masked share changes.

    With short rows for 90 % of 100 steps, and a share that falls from 30 % to 15 % after half of them:

        length   128 128 512
        share    30% 15% 15%
        last      50  90 100
    """
    rows, steps = config.rows, config.steps
    lengths = [(rows.sequence_length, steps)]
    if rows.short_length is not None:
        lengths.insert(0, (rows.short_length, round(steps * rows.short_length_share)))
    shares = [(part.share, round(steps * part.until)) for part in rows.masking.shares] or [(rows.masking.share, steps)]
    result: list[Phase] = []
    for after, last in pairwise(sorted({0, *(last for _, last in (*lengths, *shares))})):
        length, share = (next(value for value, end in values if end >= last) for values in (lengths, shares))
        has_same_length = bool(result) and result[-1].length == length
        result.append(Phase(int(length), share, after, last, result[-1].length_after if has_same_length else after))
    return result


def of_phase(config: PretrainConfig, phase: Phase) -> PretrainConfig:
    """The settings of a run that consists of this phase only."""
    masking = config.rows.masking.model_copy(update={"share": phase.share, "shares": ()})
    return config.replaced("rows", sequence_length=phase.length, short_length=None, masking=masking)


def learning_rate(config: PretrainConfig, step: int) -> float:
    """The rate of a step, counted from 1: linear warm-up, then the decay that ``schedule`` names.

    linear decays from the end of the warm-up. wsd stays at the peak and decays over the last ``DECAY_SHARE`` of the
    steps only, by 1 - sqrt (Hägele et al. 2024, arXiv 2405.18392, equation 1). Both reach zero one step after the last.
    """
    steps, optimizer, warmup = config.steps, config.optimizer, warmup_steps(config)
    if step <= warmup:
        return optimizer.lr * step / warmup
    if optimizer.schedule == "linear":
        return optimizer.lr * (steps + 1 - step) / (steps - warmup)
    decay = round(steps * DECAY_SHARE)
    decayed = max(0, step - 1 - (steps - decay))
    return optimizer.lr * (1 - math.sqrt(decayed / decay)) if decayed else optimizer.lr


def warmup_steps(config: PretrainConfig) -> int:
    """Steps of the warm-up, from ``warmup_steps`` or ``warmup_share``."""
    steps = config.optimizer.warmup_steps
    return round(config.steps * config.optimizer.warmup_share) if steps is None else steps


def first_difference(before: PretrainConfig, now: PretrainConfig, last: int) -> int | None:
    """The first of the steps 1 to ``last`` with another rate, length, share or rows under the two settings."""
    both = phases(before), phases(now)
    begins = sorted({phase.after + 1 for part in both for phase in part if phase.after < last})
    shapes = (step for step in begins if _shape_at(both[0], step) != _shape_at(both[1], step))
    rates = (step for step in range(1, last + 1) if learning_rate(before, step) != learning_rate(now, step))
    return min((step for step in (next(shapes, None), next(rates, None)) if step is not None), default=None)


def _shape_at(parts: list[Phase], step: int) -> tuple[int, float, int]:
    phase = next((phase for phase in parts if step <= phase.last), parts[-1])
    return phase.length, phase.share, phase.length_after
