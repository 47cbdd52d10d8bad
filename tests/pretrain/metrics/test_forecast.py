"""What a run will take is said before its first step, and by the clock after a handful of them."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
import torch

from pretrain.config import PretrainConfig
from pretrain.engine.world import World
from pretrain.metrics import forecast
from pretrain.metrics.device_speed import Speed
from pretrain.metrics.forecast import Forecast, OwnTime

CPU = World(0, 1, torch.device("cpu"))
GPUS = World(0, 8, torch.device("cuda", 0))
STEPS = {"steps": 1000, "global_batch": 8, "sequence_length": 32}


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    clock = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    monkeypatch.setattr(forecast, "memory_of", lambda device: (8 << 30, 16 << 30))
    monkeypatch.setattr(forecast, "peak_memory", lambda device: 3 << 30)
    return clock


def test_tokens_and_hours_are_logged_before_the_first_step(tiny: Callable[..., PretrainConfig], caplog):
    caplog.set_level(logging.INFO)
    Forecast(tiny(**STEPS), CPU, 1, lambda step: 1e6, Speed(1e9, 0.1)).before()
    Forecast(tiny(**STEPS), GPUS, 501, lambda step: 1e9, Speed(1e9)).before()
    Forecast(tiny(**STEPS), CPU, 1001, lambda step: 1e6, Speed(1e9)).before()  # training is complete
    Forecast(tiny(**STEPS), CPU, 1, lambda step: 1e6).before()
    assert caplog.messages == [
        "to train: 256,000 tokens in 1,000 steps, about 0:05:56",
        "to train: 128,000 tokens in 500 steps, about 1 day, 11:33:20",
    ]


def test_the_clock_starts_after_the_first_step_and_shows_the_rest(tiny, caplog, now: list[float]) -> None:
    caplog.set_level(logging.INFO)
    told = Forecast(tiny(**STEPS), CPU, 11, lambda step: 1e6)
    now[0] += 60  # compiling
    for step in range(11, 30):
        told.end_step(step)
        now[0] += 2
    assert caplog.messages == [
        "128 tokens per second in 5 steps; the other 984 will take 0:32:48; peak memory 3.00 of 16.0 GiB"
    ]


def test_longer_rows_to_come_take_longer(tiny, caplog, now: list[float]) -> None:
    caplog.set_level(logging.INFO)
    config = tiny(steps=100, global_batch=8, sequence_length=32, phases=[{"until": 0.5, "sequence_length": 8}, {}])
    told = Forecast(config, CPU, 1, lambda step: 1e6 if step <= 50 else 2e6)
    for step in range(1, 7):
        told.end_step(step)
        now[0] += 1
    assert "the other 94 will take 0:07:24" in caplog.text  # 44 s, and 50 steps of eight times the work


def test_own_time_is_the_time_between_two_points_and_the_wait_for_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([1.0, 1.5, 10.0, 10.7, 20.0])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    own = OwnTime(torch.device("cpu"))
    assert own.take(0.0) == 0.0
    for _ in range(4):
        own.record_point()
    assert own.take(0.1 + 0.2) == pytest.approx((0.5 + 0.7 + 0.1 + 0.2) / 2)
    assert own.take(0.0) == 0.0
