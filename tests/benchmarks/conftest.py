"""Fixtures of the tests of benchmarks."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the work of a benchmark once in this process, instead of three times in fresh processes (seconds each)."""
    from benchmarks import corpus, gpu, pretrain, timing

    def run_here(work: Callable[[Any], dict[str, Any]], order: Any, *rest: Any, **limits: Any) -> dict[str, Any]:
        found = timing.measured(work, json.loads(json.dumps(order)))
        return dict(json.loads(json.dumps(found)))

    for module in (corpus, gpu, pretrain, timing):
        monkeypatch.setattr(module, "run_fresh", run_here)
    monkeypatch.setattr(corpus, "ROUNDS", 1)
