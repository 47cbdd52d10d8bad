"""A budget and how far it goes: what a contestant has spent, what its steps cost, how many of them still fit.

A budget is CPU seconds of the process, all threads together, so that other work on the machine takes nothing from it,
or operations by the formula of the MFU, for GPUs. The number of steps is planned from the measured cost of an operation
and planned again at every point of the curve, so warm-up and fall of the rate fit what the machine really does.
"""

from __future__ import annotations

import logging
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from torch import nn

from benchmarks.speedrun.kept import Kept
from corpus.documents.errors import BadInput
from pretrain.batching.batches import TrainingBatches
from pretrain.config import PretrainConfig
from pretrain.engine.start import Engine
from pretrain.metrics.flops import flops_by_phase
from pretrain.schedule import phases

log = logging.getLogger(__name__)

Unit = Literal["cpu_s", "operations"]
LEAST_STEPS = 5  # of a plan; with fewer there is no schedule
WARM_STEPS, TIMED_STEPS, TIMED_SHARE = 2, 4, 0.01  # of the calibration: at least so many, and that of the budget
STATE = (
    "step",
    "tokens",
    "operations",
    "counting_s",
    "seconds_a_step",
    "curve",
    "_next",
)  # of a race, beside its clocks


class Budget(NamedTuple):
    unit: Unit
    amount: float


@dataclass(frozen=True, slots=True)
class Cost:
    """Operations of a step by the length of its rows and the share of them that is masked."""

    by_shape: Mapping[tuple[int, float], float]

    @classmethod
    def of(cls, batches: TrainingBatches, config: PretrainConfig, module: nn.Module, *, stock: bool) -> Cost:
        """``stock``: the model scores every position, as transformers' own loss does."""
        network: Any = module
        counted = config.replaced("model", objective="causal") if stock else config
        parts = zip(batches.phases, flops_by_phase(batches, counted, network.config.vocab_size), strict=True)
        return cls({(p.length, p.share): flops * config.global_batch * p.length for p, flops in parts})

    def of_steps(self, config: PretrainConfig, first: int, last: int) -> float:
        """Of the steps ``first`` to ``last``, both included, of a run with these settings."""
        return sum(
            max(0, min(last, part.last) - max(first - 1, part.after)) * self.by_shape[part.length, part.share]
            for part in phases(config)
        )

    def steps_within(self, config: PretrainConfig, done: int, operations: float) -> int:
        """The most steps of a run of which those after ``done`` take no more than ``operations``."""
        most = done + int(operations / min(self.by_shape.values())) + 1

        def left(steps: int) -> float:
            return self.of_steps(config.model_copy(update={"steps": steps}), done + 1, steps)

        return done + bisect_right(range(done + 1, most + 1), operations, key=left)


class Pace:
    """What a way of training asks after each step; ``config`` has the steps of the newest plan."""

    config: PretrainConfig
    is_over = False
    step = 0

    def ready(self, measure: Callable[[], dict[str, float]], engine: Engine | None = None) -> None:
        """Training begins now; ``measure`` scores the model as it then is, ``engine``, if given, has its state."""

    def after_step(self, tokens: int) -> bool:
        """Count a step; returns whether the plan has changed or the training is over."""
        raise NotImplementedError


class Calibration(Pace):
    """A few steps on a copy, to learn what one costs; nothing of it is kept, or counted in the budget."""

    def __init__(self, config: PretrainConfig, budget: Budget) -> None:
        self.config, self._budget, self._times = config, budget, list[float]()

    def after_step(self, tokens: int) -> bool:
        self.step += 1
        self._times.append(time.process_time())
        timed = self._times[WARM_STEPS - 1 :]
        spent = timed[-1] - timed[0] if timed else 0.0
        self.is_over = len(timed) > TIMED_STEPS and spent >= TIMED_SHARE * self._budget.amount
        return self.is_over

    @property
    def seconds(self) -> float:
        """CPU seconds of a step."""
        timed = self._times[WARM_STEPS - 1 :]
        return max((timed[-1] - timed[0]) / (len(timed) - 1), 1e-9)


class Race(Pace):
    """A run within the budget; it ends with the first step after which the budget is spent, whatever was planned.

    ``seconds_a_step``: of the first plan, unless operations are the budget; ``points``: measurements after the one of
    first values;
    ``kept``: where the race is kept after each, and what it goes on from.
    """

    def __init__(
        self,
        config: PretrainConfig,
        budget: Budget,
        cost: Cost,
        points: int,
        seconds_a_step: float | None,
        kept: Kept | None = None,
    ) -> None:
        self.config, self._budget, self._cost, self._points, self._kept = config, budget, cost, points, kept
        self.seconds_a_step = seconds_a_step
        first = cost.of_steps(config, 1, 1)
        self._seconds_an_operation = (seconds_a_step or 0.0) / first
        self.curve: list[dict[str, float]] = []
        self._next = 1  # the point that is due
        self.tokens, self.operations, self._free, self.counting_s = 0, 0.0, 0.0, 0.0
        self._began, self._wall = time.process_time(), time.perf_counter()

    def ready(self, measure: Callable[[], dict[str, float]], engine: Engine | None = None) -> None:
        self._measure, self._engine = measure, engine
        if self._kept and self._kept.state and engine:
            self._kept.give_to(engine)
            self._go_on(self._kept.state)
        else:
            self.counting_s = self.cpu_s
        self._plan()
        if self.config.steps < LEAST_STEPS:
            raise BadInput(
                f"the budget is that of {self.config.steps} steps, {self.counting_s:.1f} CPU seconds went before the "
                "first; raise --minutes or --operations"
            )
        if not self.curve:
            with self._stopped():
                self._add_point()

    @property
    def cpu_s(self) -> float:
        """CPU seconds since the beginning, those of measuring left out."""
        return time.process_time() - self._began - self._free

    @property
    def spent(self) -> float:
        return self.cpu_s if self._budget.unit == "cpu_s" else self.operations

    def after_step(self, tokens: int) -> bool:
        self.step += 1
        self.tokens += tokens
        self.operations += self._cost.of_steps(self.config, self.step, self.step)
        share = self.spent / self._budget.amount
        self.is_over = share >= 1 or self.step >= self.config.steps
        if not self.is_over and share * self._points < self._next:
            return False
        with self._stopped():
            self._add_point()
        if not self.is_over:
            self._next = int(share * self._points) + 1
            self._plan()
            self._keep()
        return True

    def _keep(self) -> None:
        if not (self._kept and self._engine):
            return
        state = {name: getattr(self, name) for name in STATE} | {"cpu_s": self.cpu_s, "wall_s": self._wall_s}
        with self._stopped():
            self._kept.save(self._engine, state)

    def _go_on(self, state: Mapping[str, Any]) -> None:
        """Be what a race was when it was kept; what was spent since is not counted."""
        for name in STATE:
            setattr(self, name, state[name])
        self._began, self._wall = time.process_time() - state["cpu_s"], time.perf_counter() - state["wall_s"]
        log.info("goes on at %.0f %%", 100 * self.spent / self._budget.amount)

    @property
    def _wall_s(self) -> float:
        return time.perf_counter() - self._wall

    def _plan(self) -> None:
        """Choose the steps that fit what is left."""
        left = self._budget.amount - self.spent
        if self._budget.unit == "cpu_s":
            if self.operations:
                self._seconds_an_operation = (self.cpu_s - self.counting_s) / self.operations
            left /= self._seconds_an_operation
        steps = self._cost.steps_within(self.config, self.step, max(left, 0.0))
        self.config = self.config.model_copy(update={"steps": max(steps, self.step + 1)})

    def _add_point(self) -> None:
        figures = {"spent": self.spent, "cpu_s": self.cpu_s, "wall_s": self._wall_s}
        counts = {"operations": self.operations, "step": self.step, "tokens": self.tokens}
        found = self._measure()
        self.curve.append(figures | counts | found)
        if not self.is_over:
            share, accuracy = self.spent / self._budget.amount, found["accuracy"]
            log.info("%.0f %%: loss %.3f, accuracy %.1f %%", 100 * share, found["loss"], 100 * accuracy)

    @contextmanager
    def _stopped(self) -> Iterator[None]:
        """Time inside is not counted; what is asked for inside stands still."""
        began, before = time.process_time(), self._free
        yield
        self._free = before + time.process_time() - began
