"""The budget of a candidate: what it has spent, what its steps cost, and how many steps still fit.

A budget is CPU seconds of the process, all threads together, so that other work on the machine does not count; or
operations by the formula of the MFU, for GPUs. The number of steps is planned from the measured cost of an operation
and planned again at every evaluation, so that warm-up and decay of the learning rate fit the speed of the machine.
The state at the last evaluation is saved, so that a killed run resumes with the same result: batches and masks are
functions of the step, and the plan follows from what was spent.
"""

from __future__ import annotations

import json
import logging
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from corpus.documents.atomic_files import PARTIAL_SUFFIX, locate_errors
from corpus.documents.errors import BadInput
from pretrain.batching.batches import TrainingBatches
from pretrain.config import PretrainConfig
from pretrain.engine.start import Engine
from pretrain.metrics.flops import flops_by_phase
from pretrain.schedule import phases

log = logging.getLogger(__name__)

Unit = Literal["cpu_s", "operations"]
MIN_STEPS = 5  # of a plan; fewer steps have no schedule
WARM_STEPS, TIMED_STEPS, TIMED_SHARE = 2, 4, 0.01  # calibration: minimum numbers of steps, and share of the budget
STATE = ("step", "tokens", "operations", "counting_s", "seconds_a_step", "curve", "_next")  # saved fields of a run


class Budget(NamedTuple):
    unit: Unit
    amount: float


@dataclass(frozen=True, slots=True)
class Cost:
    """Operations of a step by the length of its rows and their masked share."""

    by_shape: Mapping[tuple[int, float], float]

    @classmethod
    def of(cls, batches: TrainingBatches, config: PretrainConfig, module: nn.Module, *, stock: bool) -> Cost:
        """``stock``: the model scores every position, as the loss of transformers does."""
        network: Any = module
        flops_config = config.replaced("model", objective="causal") if stock else config
        parts = zip(batches.phases, flops_by_phase(batches, flops_config, network.config.vocab_size), strict=True)
        return cls({(p.length, p.share): flops * p.config.global_batch * p.length for p, flops in parts})

    def of_steps(self, config: PretrainConfig, first: int, last: int) -> float:
        """Operations of the steps ``first`` to ``last``, inclusive, of a run with these settings."""
        return sum(
            max(0, min(last, part.last) - max(first - 1, part.after)) * self.by_shape[part.length, part.share]
            for part in phases(config)
        )

    def steps_within(self, config: PretrainConfig, done: int, operations: float) -> int:
        """The largest number of steps of a run whose steps after ``done`` take at most ``operations``."""
        highest = done + int(operations / min(self.by_shape.values())) + 1

        def left(steps: int) -> float:
            return self.of_steps(config.model_copy(update={"steps": steps}), done + 1, steps)

        return done + bisect_right(range(done + 1, highest + 1), operations, key=left)


WEIGHTS, MOMENTS = "weights", "moments"


class SavedState:
    """A run at its last evaluation, in one file. ``state`` is None without a file, or with one of other settings."""

    def __init__(self, path: Path, settings: str) -> None:
        self._path, self._settings = path, settings
        self.state: dict[str, Any] | None = None
        with suppress(FileNotFoundError, SafetensorError), safe_open(path, "pt") as file:
            metadata = file.metadata()
            if metadata["settings"] == settings:
                self.state = json.loads(metadata["state"])

    def restore(self, engine: Engine) -> None:
        assert self.state is not None
        parts: dict[str, dict[str, Tensor]] = {WEIGHTS: {}, MOMENTS: {}}
        for key, tensor in load_file(self._path).items():
            part, _, name = key.partition("/")
            parts[part][name] = tensor
        engine.restore(parts[WEIGHTS], parts[MOMENTS], self.state["step"])

    def save(self, engine: Engine, state: dict[str, Any]) -> None:
        """Replace the saved state atomically."""
        parts = zip((WEIGHTS, MOMENTS), engine.state(keep=True), strict=True)
        tensors = {f"{part}/{name}": tensor for part, named in parts for name, tensor in named.items()}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        partial = self._path.with_name(self._path.name + PARTIAL_SUFFIX)
        with locate_errors(partial):
            save_file(tensors, partial, {"settings": self._settings, "state": json.dumps(state)})
        partial.replace(self._path)

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)


class StepControl:
    """Decides after each step whether training continues; ``config`` has the steps of the newest plan."""

    config: PretrainConfig
    is_over = False
    step = 0

    def ready(self, measure: Callable[[], dict[str, float]], engine: Engine | None = None) -> None:
        """Training starts now. ``measure`` evaluates the current model; ``engine``, if given, has its state."""

    def after_step(self, tokens: int) -> bool:
        """Count a step. Returns True if the plan has changed or the training is over."""
        raise NotImplementedError


class Calibration(StepControl):
    """A few steps on a copy of the model, to measure the cost of a step. They do not count in the budget."""

    def __init__(self, config: PretrainConfig, budget: Budget) -> None:
        self.config, self._budget, self._speedup = config, budget, list[float]()

    def after_step(self, tokens: int) -> bool:
        self.step += 1
        self._speedup.append(time.process_time())
        timed = self._speedup[WARM_STEPS - 1 :]
        spent = timed[-1] - timed[0] if timed else 0.0
        self.is_over = len(timed) > TIMED_STEPS and spent >= TIMED_SHARE * self._budget.amount
        return self.is_over

    @property
    def seconds(self) -> float:
        """CPU seconds of a step."""
        timed = self._speedup[WARM_STEPS - 1 :]
        return max((timed[-1] - timed[0]) / (len(timed) - 1), 1e-9)


class BudgetedRun(StepControl):
    """A run within the budget. It ends after the first step that spends the budget, also before the planned end.

    ``seconds_a_step``: for the first plan, unless the budget is operations. ``points``: evaluations after the one of
    the initial weights. ``saved_state``: where the run is saved after each evaluation, and resumes from.
    """

    def __init__(
        self,
        config: PretrainConfig,
        budget: Budget,
        cost: Cost,
        points: int,
        seconds_a_step: float | None,
        saved_state: SavedState | None = None,
    ) -> None:
        self.config, self._budget, self._cost, self._points, self._saved = config, budget, cost, points, saved_state
        self.seconds_a_step = seconds_a_step
        first = cost.of_steps(config, 1, 1)
        self._seconds_an_operation = (seconds_a_step or 0.0) / first
        self.curve: list[dict[str, float]] = []
        self._next = 1  # the next evaluation
        self.tokens, self.operations, self._free, self.counting_s = 0, 0.0, 0.0, 0.0
        self._began, self._wall = time.process_time(), time.perf_counter()

    def ready(self, measure: Callable[[], dict[str, float]], engine: Engine | None = None) -> None:
        self._measure, self._engine = measure, engine
        if self._saved and self._saved.state and engine:
            self._saved.restore(engine)
            self._resume(self._saved.state)
        else:
            self.counting_s = self.cpu_s
        self._plan()
        if self.config.steps < MIN_STEPS:
            raise BadInput(
                f"the budget allows only {self.config.steps} steps ({self.counting_s:.1f} CPU seconds were used "
                f"before the first one); at least {MIN_STEPS} are needed. Raise --minutes or --operations"
            )
        if not self.curve:
            with self._stopped():
                self._add_point()

    @property
    def cpu_s(self) -> float:
        """CPU seconds since the start, without those of evaluations."""
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
            self._save()
        return True

    def _save(self) -> None:
        if not (self._saved and self._engine):
            return
        state = {name: getattr(self, name) for name in STATE} | {"cpu_s": self.cpu_s, "wall_s": self._wall_s}
        with self._stopped():
            self._saved.save(self._engine, state)

    def _resume(self, state: Mapping[str, Any]) -> None:
        """Restore the counters and clocks of the saved run."""
        for name in STATE:
            setattr(self, name, state[name])
        self._began, self._wall = time.process_time() - state["cpu_s"], time.perf_counter() - state["wall_s"]
        log.info("resuming at %.0f %%", 100 * self.spent / self._budget.amount)

    @property
    def _wall_s(self) -> float:
        return time.perf_counter() - self._wall

    def _plan(self) -> None:
        """Choose the number of steps that fits the rest of the budget."""
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
        scores = self._measure()
        self.curve.append(figures | counts | scores)
        if not self.is_over:
            share, accuracy = self.spent / self._budget.amount, scores["accuracy"]
            log.info("%.0f %%: loss %.3f, accuracy %.1f %%", 100 * share, scores["loss"], 100 * accuracy)

    @contextmanager
    def _stopped(self) -> Iterator[None]:
        """Time inside the block is not counted."""
        began, before = time.process_time(), self._free
        yield
        self._free = before + time.process_time() - began
