"""What changes over the steps of a run: learning rate, and the settings of each phase (``pretrain.phases``).

Everything here is a pure function of the settings and the step, so nothing has to be saved.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, NamedTuple

from pretrain.config import DECAY_SHARE, PhaseConfig, PretrainConfig


class Phase(NamedTuple):
    """Steps with the same settings: from ``after`` + 1 to ``last``."""

    config: PretrainConfig  # of a run that consists of this phase only
    rope_theta: float | None  # None: that of the model
    after: int
    last: int
    sequences_before: int  # that earlier phases took from rows of the same length and mixture

    @property
    def length(self) -> int:
        """Tokens of a row."""
        return self.config.rows.sequence_length

    @property
    def share(self) -> float:
        """The share of them to predict."""
        return self.config.rows.masking.share

    @property
    def rows_key(self) -> tuple[Any, ...]:
        """Equal for phases that continue one sequence of rows."""
        sources = self.config.rows.sources
        return self.length, tuple(sorted(sources.items())) if isinstance(sources, dict) else sources or ()

    def sequences_until(self, step: int) -> int:
        """Sequences of the phase up to and including a step."""
        return max(0, min(step, self.last) - self.after) * self.config.global_batch

    def first_sequence(self, step: int) -> int:
        """Number of the first sequence of a step among the rows of the phase, which earlier phases may have begun."""
        return self.sequences_before + (step - self.after - 1) * self.config.global_batch

    def __str__(self) -> str:
        share = "" if self.config.is_causal else f", {self.share:.1%} masked"
        base = f", rope base {self.rope_theta:,.0f}" if self.rope_theta else ""
        sources, mixed = self.config.rows.sources, ""
        if isinstance(sources, float):
            mixed = f", sources to the power of {sources:g}"
        elif sources:
            mixed = ", sources " + ", ".join(f"{name} x {weight:g}" for name, weight in sources.items())
        return f"{self.config.global_batch:,} rows of {self.length:,} tokens{share}{base}{mixed}"


def phases(config: PretrainConfig) -> list[Phase]:
    """The phases of a run in order; a run without ``phases`` has one.

    With two phases of 128 tokens, the first with 30 % masked, one of 512 tokens, and 100 steps:

        length   128 128 512
        share    30% 15% 15%
        last      50  90 100
    """
    result: list[Phase] = []
    taken: Counter[tuple[Any, ...]] = Counter()
    after = 0
    for part in config.phases or (PhaseConfig(),):
        last = round(config.steps * part.until)
        if last > after:
            phase = Phase(_settings_of(config, part), part.rope_theta, after, last, 0)
            phase = phase._replace(sequences_before=taken[phase.rows_key])
            taken[phase.rows_key] += phase.sequences_until(last)
            result.append(phase)
            after = last
    return result


def _settings_of(config: PretrainConfig, part: PhaseConfig) -> PretrainConfig:
    rows: dict[str, Any] = {"sequence_length": part.sequence_length, "sources": part.sources}
    masking = {} if part.masked_share is None else {"share": part.masked_share}
    rows["masking"] = config.rows.masking.model_copy(update=masking)
    own = config.replaced("rows", **{key: value for key, value in rows.items() if value is not None})
    return own.model_copy(update={"phases": (), "global_batch": part.global_batch or config.global_batch})


def learning_rate(config: PretrainConfig, step: int) -> float:
    """The rate of a step, counted from 1: that of the full run, or of its phase if the phase has one."""
    after = 0
    for part in config.phases:
        last = round(config.steps * part.until)
        if step <= last:
            if part.lr is not None:
                return _rate(part.lr, part.schedule, part.warmup_steps, last - after, step - after)
            break
        after = last
    return _rate(config.optimizer.lr, config.optimizer.schedule, warmup_steps(config), config.steps, step)


def _rate(peak: float, schedule: str, warmup: int, steps: int, step: int) -> float:
    """Linear warm-up, then the decay that ``schedule`` names.

    linear decays from the end of the warm-up. wsd stays at the peak and decays over the last ``DECAY_SHARE`` of the
    steps only, by 1 - sqrt (Hägele et al. 2024, arXiv 2405.18392, equation 1). Both reach zero one step after the last.
    """
    if step <= warmup:
        return peak * step / warmup
    if schedule == "linear":
        return peak * (steps + 1 - step) / (steps - warmup)
    decay = round(steps * DECAY_SHARE)
    decayed = max(0, step - 1 - (steps - decay))
    return peak * (1 - math.sqrt(decayed / decay)) if decayed else peak


def warmup_steps(config: PretrainConfig) -> int:
    """Steps of the warm-up, from ``warmup_steps`` or ``warmup_share``."""
    steps = config.optimizer.warmup_steps
    return round(config.steps * config.optimizer.warmup_share) if steps is None else steps


def first_difference(before: PretrainConfig, now: PretrainConfig, last: int) -> int | None:
    """The first of the steps 1 to ``last`` with another rate, other rows or other settings under the two recipes."""
    both = phases(before), phases(now)
    begins = sorted({phase.after + 1 for part in both for phase in part if phase.after < last})
    shapes = (step for step in begins if _shape_at(both[0], step) != _shape_at(both[1], step))
    rates = (step for step in range(1, last + 1) if learning_rate(before, step) != learning_rate(now, step))
    return min((step for step in (next(shapes, None), next(rates, None)) if step is not None), default=None)


def _shape_at(parts: list[Phase], step: int) -> tuple[Any, ...]:
    phase = next((phase for phase in parts if step <= phase.last), parts[-1])
    batch = phase.config.global_batch
    return *phase.rows_key, phase.share, phase.rope_theta, batch, phase.first_sequence(step)
