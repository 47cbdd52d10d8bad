"""The stage as a fixture."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from corpus.config import CorpusConfig
from corpus.files import find_texts
from corpus.run import CorpusInputs, run

Clean = Callable[..., dict[str, Any]]


@pytest.fixture
def clean(tmp_path: Path) -> Clean:
    """Run the stage over files: ``clean(path, …, benchmarks=[…], workers=1, out="out", **settings)``."""

    def run_stage(*paths: Path, benchmarks: Iterable[Path] = (), workers: int = 1, out: str = "out", **settings: Any):
        patterns = [str(path) for path in paths]
        folder = tmp_path / out
        folder.mkdir(exist_ok=True)
        inputs = CorpusInputs(find_texts(patterns), list(benchmarks))
        return run(CorpusConfig(inputs=patterns, **settings), inputs, folder, workers=workers)

    return run_stage
