"""Signs of trouble in the steps since the last log line: a loss that is not finite, or a jump of the gradient norm.

A loss that is not finite stops the run and names the first such step. A gradient norm far above its running median
gives one warning per line. Both name the rows of the step, because unusual text is a common cause. The check runs once
per log line, so that no step waits for the device; a diverged run therefore continues to the end of its interval.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from types import MappingProxyType
from typing import NamedTuple

from corpus.documents.errors import BadInput
from pretrain.config import PretrainConfig
from pretrain.model.loss import mean_loss

log = logging.getLogger(__name__)

JUMP = 10.0  # times the median
REMEMBERED = 101  # number of norms for the median
MIN_REMEMBERED = 20  # with fewer, as in the first steps, no norm counts as unusual
SHOWN = 4  # rows or ranks

NamesOfStep = Callable[..., list[str]]  # of a step, or of a step and a rank


class StepSums(NamedTuple):
    """One step over all processes: sums as in ``Sums``, their counts, learning rate and gradient norm.

    ``tokens``: without padding. ``grad_norm``: before clipping; nan if the engine gave none, inf if not finite.
    """

    step: int
    mlm_loss: float
    mlm_hits: float
    other_loss: float
    other_hits: float
    predictions: float
    tokens: float
    others: float
    lr: float
    grad_norm: float

    @property
    def loss(self) -> float:
        """The mean training loss of the step."""
        return float(mean_loss(self, self.predictions, self.others))


def require_finite_losses(
    steps: Sequence[StepSums],
    config: PretrainConfig,
    names_of_step: NamesOfStep,
    ranks: Mapping[int, str] = MappingProxyType({}),
) -> None:
    """Raise BadInput if training has diverged; it names the first bad step, its rows and the loss before it.

    ``ranks``: with several processes, the ranks (and hosts) whose part of that step is bad.
    """
    for place, bad in enumerate(steps):
        if not math.isfinite(bad.loss):
            now = config.optimizer
            key = "warmup_share" if now.warmup_steps is None else "warmup_steps"
            earlier = steps[place - 1]
            norm = "" if math.isnan(earlier.grad_norm) else f" and gradient norm {earlier.grad_norm:.3g}"
            before = f"; loss {earlier.loss:.3f}{norm} before it" if place else ""
            first = next(iter(ranks), None)
            rows = names_of_step(bad.step) if first is None else names_of_step(bad.step, first)
            raise BadInput(
                f"step {bad.step}: the loss is not finite ({bad.loss}){_on_ranks(ranks)} at learning rate "
                f"{bad.lr:.3g}{before}; "
                f"rows {_some_rows(rows)}; training has diverged: lower pretrain.optimizer.lr "
                f"({now.lr:g}), raise pretrain.optimizer.{key} ({getattr(now, key):g}) or set "
                f"pretrain.optimizer.clip ({now.clip:g}) to 1"
            )


def warn_of_jump(
    steps: Sequence[StepSums], norms: Sequence[float], config: PretrainConfig, names_of_step: NamesOfStep
) -> None:
    """Warn of the first step whose gradient norm jumps or is not finite; in fp16 only of jumps.

    Loss scaling skips steps with norms that are not finite. ``norms``: of the steps before (``remember_norms``).
    """
    for step in steps:
        if step.grad_norm == math.inf and config.engine.precision != "fp16":
            log.warning(
                "step %d: the gradient norm is not finite (the loss is %.3f), so the step was skipped, as were %d of "
                "the last %d; rows %s; if this continues, lower pretrain.optimizer.lr (%g)",
                *(step.step, step.loss, sum(other.grad_norm == math.inf for other in steps), len(steps)),
                *(_some_rows(names_of_step(step.step)), config.optimizer.lr),
            )
            return
        usual = median(norms) if len(norms) >= MIN_REMEMBERED else math.inf
        if math.isfinite(step.grad_norm) and step.grad_norm > JUMP * usual:
            log.warning(
                "step %d: gradient norm %.3g is %.1f times the median of the %d steps before (%.3g), loss %.3f; rows "
                "%s; if it happens once, check these rows; if it happens often, set pretrain.optimizer.clip (%g) or "
                "lower pretrain.optimizer.lr (%g)",
                *(step.step, step.grad_norm, step.grad_norm / max(usual, 1e-30), len(norms), usual, step.loss),
                *(_some_rows(names_of_step(step.step)), config.optimizer.clip, config.optimizer.lr),
            )
            return
        norms = remember_norms(norms, [step])


def remember_norms(norms: Sequence[float], steps: Sequence[StepSums]) -> list[float]:
    """The newest finite gradient norms, including those of ``steps``."""
    finite = [step.grad_norm for step in steps if math.isfinite(step.grad_norm)]
    return [*norms, *finite][-REMEMBERED:]


def _on_ranks(ranks: Mapping[int, str]) -> str:
    """`` on rank 3 (node-b)``; the named rows are those of the first rank."""
    names = [f"rank {rank} ({host})" for rank, host in ranks.items()]
    return f" on {', '.join(names[:SHOWN])}{_more(names)}" if names else ""


def _some_rows(names: Sequence[str]) -> str:
    return f"{' '.join(names[:SHOWN])} (epoch:row){_more(names)}"


def _more(names: Sequence[str]) -> str:
    return f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
