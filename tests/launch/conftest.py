"""Fixtures of the conductor's tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.launch.fake_hub import Hub, serve


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    yield from serve(monkeypatch)


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the bench do here, once, what it does three times in fresh processes, which take seconds each."""
    from launch.bench import corpus, pretrain, timing

    def run_here(work: Callable[[Any], dict[str, Any]], order: Any, *rest: Any) -> dict[str, Any]:
        found = timing.measured(work, json.loads(json.dumps(order)))
        return dict(json.loads(json.dumps(found)))

    for module in (corpus, pretrain, timing):
        monkeypatch.setattr(module, "run_fresh", run_here)
    monkeypatch.setattr(corpus, "ROUNDS", 1)
