"""The steps since the last line, and the signs in them that training goes wrong.

A loss that is not finite stops the run and names the first step that had one; a gradient norm far above its running
median is worth one warning a line. Both name the rows of the step, because odd text is a common cause. Looked for once
a line, so the device is never waited for in between; the price is that a run goes on to the end of its interval.
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
from pretrain.model.module import mean_loss

log = logging.getLogger(__name__)

JUMP = 10.0  # times the median
REMEMBERED = 101  # norms that the median is taken over
LEAST_REMEMBERED = 20  # below, as in the first steps, nothing is known to be unusual
ROWS_SHOWN = 4
RANKS_SHOWN = 4

NamesOfStep = Callable[..., list[str]]  # of a step, or of a step and a rank


class StepSums(NamedTuple):
    """One step over all processes: sums as in ``Sums``, how many they are of, rate and norm of the gradient.

    ``tokens`` leaves padding out; ``grad_norm`` is before clipping, nan where the engine gave none, inf where it was
    not finite.
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

    def loss(self, config: PretrainConfig) -> float:
        """Its mean over the step, as it was trained on."""
        return float(mean_loss(self, self.predictions, self.others, config))


def require_finite_losses(
    steps: Sequence[StepSums],
    config: PretrainConfig,
    names_of_step: NamesOfStep,
    ranks: Mapping[int, str] = MappingProxyType({}),
) -> None:
    """Stop (BadInput) where training has diverged, naming the first bad step, its rows and what went before.

    ``ranks``: the processes, with their hosts, whose own part of that step is bad, where there are several processes.
    """
    for place, bad in enumerate(steps):
        if not math.isfinite(bad.loss(config)):
            now = config.optimizer
            key = "warmup_share" if now.warmup_steps is None else "warmup_steps"
            before = f"; {_describe(steps[place - 1], config)} before it" if place else ""
            first = next(iter(ranks), None)
            rows = names_of_step(bad.step) if first is None else names_of_step(bad.step, first)
            raise BadInput(
                f"step {bad.step}: the loss is not finite ({bad.loss(config)}){_on_ranks(ranks)} at learning rate "
                f"{bad.lr:.3g}{before}; "
                f"rows {_some_rows(rows)}; training has diverged: lower pretrain.optimizer.lr "
                f"({now.lr:g}), raise pretrain.optimizer.{key} ({getattr(now, key):g}) or set "
                f"pretrain.optimizer.clip ({now.clip:g}) to 1"
            )


def warn_of_jump(
    steps: Sequence[StepSums], norms: Sequence[float], config: PretrainConfig, names_of_step: NamesOfStep
) -> None:
    """Warn of the first step whose gradient norm jumps, or is not finite.

    In fp16 only of the former, as loss scaling makes the latter now and then and passes over such steps. ``norms``:
    what ``remember_norms`` gave for the steps before these.
    """
    for step in steps:
        if step.grad_norm == math.inf and config.engine.precision != "fp16":
            log.warning(
                "step %d: the gradient norm is not finite, though the loss is (%.3f), so the step moved nothing, as %d "
                "of the last %d; rows %s; if it goes on, lower pretrain.optimizer.lr (%g)",
                *(step.step, step.loss(config), sum(other.grad_norm == math.inf for other in steps), len(steps)),
                *(_some_rows(names_of_step(step.step)), config.optimizer.lr),
            )
            return
        usual = median(norms) if len(norms) >= LEAST_REMEMBERED else math.inf
        if math.isfinite(step.grad_norm) and step.grad_norm > JUMP * usual:
            log.warning(
                "step %d: gradient norm %.3g is %.1f times the median of the %d steps before (%.3g), loss %.3f; rows "
                "%s; once, look at these rows; often, set pretrain.optimizer.clip (%g) or lower pretrain.optimizer.lr "
                "(%g)",
                *(step.step, step.grad_norm, step.grad_norm / max(usual, 1e-30), len(norms), usual, step.loss(config)),
                *(_some_rows(names_of_step(step.step)), config.optimizer.clip, config.optimizer.lr),
            )
            return
        norms = remember_norms(norms, [step])


def remember_norms(norms: Sequence[float], steps: Sequence[StepSums]) -> list[float]:
    """The newest finite gradient norms, those of ``steps`` added."""
    found = [step.grad_norm for step in steps if math.isfinite(step.grad_norm)]
    return [*norms, *found][-REMEMBERED:]


def _on_ranks(ranks: Mapping[int, str]) -> str:
    """`` on rank 3 (node-b)``; the rows that are named are those of the first."""
    said = [f"rank {rank} ({host})" for rank, host in list(ranks.items())[:RANKS_SHOWN]]
    more = f" and {len(ranks) - RANKS_SHOWN} more" if len(ranks) > RANKS_SHOWN else ""
    return f" on {', '.join(said)}{more}" if said else ""


def _describe(step: StepSums, config: PretrainConfig) -> str:
    norm = "" if math.isnan(step.grad_norm) else f" and gradient norm {step.grad_norm:.3g}"
    return f"loss {step.loss(config):.3f}{norm}"


def _some_rows(names: Sequence[str]) -> str:
    shown = " ".join(names[:ROWS_SHOWN])
    left = len(names) - ROWS_SHOWN
    return f"{shown} (epoch:row)" if left <= 0 else f"{shown} (epoch:row) and {left} more"
