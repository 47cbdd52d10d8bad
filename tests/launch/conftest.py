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
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Let a module of the bench do here, once, what it does three times in fresh processes, which take seconds each."""
    from launch.bench.timing import measured

    def run_here(work: Callable[[Any], dict[str, Any]], order: Any, *rest: Any) -> dict[str, Any]:
        found = measured(work, json.loads(json.dumps(order)))
        return dict(json.loads(json.dumps(found)))

    def switch(module: str) -> None:
        monkeypatch.setattr(f"launch.bench.{module}.run_fresh", run_here)
        monkeypatch.setattr(f"launch.bench.{module}.ROUNDS", 1, raising=False)

    return switch
