"""How long a run will take: before the first step from the device's speed, then from the clock.

The first estimate uses ``pretrain.metrics.device_speed``. The second one is logged after a few steps, of which the
first is not timed, with the memory they needed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import timedelta

import torch

from pretrain.config import PretrainConfig
from pretrain.engine.memory import GIB, memory_of
from pretrain.engine.world import World, peak_memory
from pretrain.metrics.device_speed import Speed
from pretrain.schedule import phases

log = logging.getLogger(__name__)

TIMED_STEPS = 5
FlopsOfStep = Callable[[int], float]


class TimePoint:
    """A point in the work of a device, recorded without waiting; on a CPU, a point in time."""

    def __init__(self, device: torch.device) -> None:
        accelerator = torch.accelerator.current_accelerator()
        is_own = accelerator is not None and accelerator.type == device.type
        self._event, self._now = torch.Event(device, enable_timing=True) if is_own else None, time.monotonic()
        if self._event is not None:
            self._event.record()

    def is_past(self) -> bool:
        return self._event is None or self._event.query()

    def seconds_to(self, later: TimePoint) -> float:
        if self._event is None or later._event is None:
            return max(later._now - self._now, 1e-9)
        return self._event.elapsed_time(later._event) / 1000


class OwnTime:
    """Seconds of this process's own part of the steps since the last ``take``.

    Processes end a step together. A process's own part ends where it first waits for others: with the last forward
    pass. ZeRO 3 gathers weights in the forward pass, which hides a slow process.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._points: list[TimePoint] = []  # begin and end of each step's part, alternating

    def record_point(self) -> None:
        """Record the begin or the end of this process's part of a step."""
        self._points.append(TimePoint(self._device))

    def take(self, waited: float) -> float:
        """The mean per step, 0 without a step; the device must have finished them. ``waited``: for their batches."""
        begins, ends = self._points[::2], self._points[1::2]
        total = waited + sum(a.seconds_to(b) for a, b in zip(begins, ends, strict=False))
        self._points = []
        return total / max(len(ends), 1)


class Forecast:
    """Logs both estimates of a run, in the first process.

    ``flops_of_step``: operations to train on a token of a step; ``speed``: of all devices, None in the other processes.
    """

    def __init__(
        self, config: PretrainConfig, world: World, first: int, flops_of_step: FlopsOfStep, speed: Speed | None = None
    ) -> None:
        self._config, self._world, self._first, self._flops_of_step = config, world, first, flops_of_step
        self._speed = speed
        self._points: list[TimePoint] = []

    def before(self) -> None:
        """Log the rest of the training and its time, if the speed is known."""
        (tokens, flops), steps = self._left(self._first - 1), self._config.steps - self._first + 1
        if tokens and self._speed:
            time_left = timedelta(seconds=round(self._speed.seconds(flops, steps)))
            log.info("to train: %s tokens in %s steps, about %s", f"{tokens:,}", f"{steps:,}", time_left)

    def end_step(self, step: int) -> None:
        """Count a step; after the timed ones, log how long the rest takes."""
        if step - self._first in (0, TIMED_STEPS):
            self._points.append(TimePoint(self._world.device))
        if len(self._points) < 2 or not self._world.is_first or not self._points[1].is_past():
            return
        seconds, last = self._points[0].seconds_to(self._points[1]), self._first + TIMED_STEPS
        self._points = []
        tokens, work = (a - b for a, b in zip(self._left(self._first), self._left(last), strict=True))
        if not work:
            return
        rest, device = timedelta(seconds=round(self._left(last)[1] / work * seconds)), self._world.device
        used, total = peak_memory(device) / GIB, memory_of(device)[1] / GIB
        log.info(
            "%s tokens per second in %d steps; the other %s will take %s; peak memory %.2f of %.1f GiB",
            *(f"{tokens / seconds:,.0f}", TIMED_STEPS, f"{self._config.steps - last:,}", rest, used, total),
        )

    def _left(self, step: int) -> tuple[int, float]:
        """Tokens and operations after a step, including padding."""
        tokens, flops = 0, 0.0
        for phase in phases(self._config):
            some = (phase.sequences_until(phase.last) - phase.sequences_until(step)) * phase.length
            tokens, flops = tokens + some, flops + some * self._flops_of_step(phase.last)
        return tokens, flops
