"""The embedded KLUE files, and the environment that points openai-api/loopback/… to a server of the test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from launch.sample.unpack import find_klue
from tests.finetune.generative.server import Server

KEY = "sk-planted-0123456789"


@pytest.fixture(scope="session")
def klue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the embedded KLUE files."""
    return find_klue("malmoi:sample", tmp_path_factory.mktemp("klue"))


@pytest.fixture
def point(monkeypatch: pytest.MonkeyPatch) -> Callable[[Server], None]:
    """Point the environment to a server."""

    def to(server: Server) -> None:
        monkeypatch.setenv("LOOPBACK_BASE_URL", server.address)
        monkeypatch.setenv("LOOPBACK_API_KEY", KEY)

    return to
