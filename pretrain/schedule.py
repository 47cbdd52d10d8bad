"""What changes over the steps of a run: the learning rate, the length of the rows and the share of masked tokens.

Everything here is a pure function of the settings and the step, so that nothing of it has to be saved.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

from pretrain.config import PretrainConfig


class Phase(NamedTuple):
    """Steps whose batches have one shape: those after ``after`` up to ``last``."""

    length: int  # tokens of a row
    share: float  # of them to predict
    after: int
    last: int
    length_after: int  # the step after which rows of this length begin; they are counted from there


def phases(config: PretrainConfig) -> list[Phase]:
    """The phases of a run in order: a new one wherever the length of the rows or the share of masked tokens changes.

    Where rows are short for 90 % of 100 steps, and a share of 30 % falls to 15 % after half of them:

        length   128 128 512
        share    30% 15% 15%
        last      50  90 100
    """
    rows, steps = config.rows, config.steps
    lengths = [(rows.sequence_length, steps)]
    if rows.short_length is not None:
        lengths.insert(0, (rows.short_length, round(steps * rows.short_length_share)))
    shares = [(part.share, round(steps * part.until)) for part in rows.masking.shares] or [(rows.masking.share, steps)]
    found: list[Phase] = []
    for after, last in pairwise(sorted({0, *(last for _, last in (*lengths, *shares))})):
        length, share = (next(value for value, end in values if end >= last) for values in (lengths, shares))
        is_same = bool(found) and found[-1].length == length
        found.append(Phase(int(length), share, after, last, found[-1].length_after if is_same else after))
    return found


def of_phase(config: PretrainConfig, phase: Phase) -> PretrainConfig:
    """The settings of a run that is in this phase from its first step to its last."""
    masking = config.rows.masking.model_copy(update={"share": phase.share, "shares": ()})
    return config.replaced("rows", sequence_length=phase.length, short_length=None, masking=masking)


def learning_rate(config: PretrainConfig, step: int) -> float:
    """The rate of a step, counted from 1: a linear rise over the warm-up, then the fall that ``schedule`` names.

    linear and cosine (Loshchilov and Hutter 2017, arXiv 1608.03983) fall from the end of the warm-up on. wsd stays at
    the peak and falls over the last ``decay_share`` of the steps alone, by 1 - sqrt (Hägele et al. 2024, arXiv
    2405.18392, equation 1). All of them would be at zero one step after the last.
    """
    steps, optimizer, warmup = config.steps, config.optimizer, warmup_steps(config)
    if step <= warmup:
        return optimizer.lr * step / warmup
    if optimizer.schedule == "linear":
        return optimizer.lr * (steps + 1 - step) / (steps - warmup)
    if optimizer.schedule == "cosine":
        return optimizer.lr * (1 + math.cos(math.pi * (step - 1 - warmup) / (steps - warmup))) / 2
    decay = round(steps * optimizer.decay_share)
    fallen = max(0, step - 1 - (steps - decay))
    return optimizer.lr * (1 - math.sqrt(fallen / decay)) if fallen else optimizer.lr


def warmup_steps(config: PretrainConfig) -> int:
    given = config.optimizer.warmup_steps
    return round(config.steps * config.optimizer.warmup_share) if given is None else given


def first_difference(before: PretrainConfig, now: PretrainConfig, last: int) -> int | None:
    """The first of the steps 1 to ``last`` that the two settings train at another rate, length, share or place."""
    both = phases(before), phases(now)
    begins = sorted({phase.after + 1 for part in both for phase in part if phase.after < last})
    shapes = (step for step in begins if _shape_at(both[0], step) != _shape_at(both[1], step))
    rates = (step for step in range(1, last + 1) if learning_rate(before, step) != learning_rate(now, step))
    found = [step for step in (next(shapes, None), next(rates, None)) if step is not None]
    return min(found, default=None)


def _shape_at(parts: list[Phase], step: int) -> tuple[int, float, int]:
    phase = next((phase for phase in parts if step <= phase.last), parts[-1])
    return phase.length, phase.share, phase.length_after
