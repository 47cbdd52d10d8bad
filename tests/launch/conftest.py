"""Fixtures of the conductor's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.launch.fake_hub import Hub, serve


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    yield from serve(monkeypatch)
