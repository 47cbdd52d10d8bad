"""The stage as a fixture."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from corpus.config import CorpusConfig
from corpus.reading.inputs import find_inputs
from corpus.run import CorpusInputs, run

Clean = Callable[..., dict[str, Any]]


@pytest.fixture
def clean(tmp_path: Path) -> Clean:
    """Run the stage over files: ``clean(path, …, benchmarks=[…], workers=1, out="out", **settings)``."""

    def run_stage(
        *paths: Path,
        benchmarks: Iterable[Path] = (),
        workers: int = 1,
        out: str = "out",
        map_units: Any = None,
        **settings: Any,
    ) -> dict[str, Any]:
        patterns = [str(path) for path in paths]
        folder = tmp_path / out
        folder.mkdir(exist_ok=True)
        config = CorpusConfig(inputs=patterns, **settings)
        inputs = CorpusInputs(
            find_inputs(config.inputs, config.sources, config.text_field, config.encoding), list(benchmarks)
        )
        return run(config, inputs, folder, workers=workers, map_units=map_units)

    return run_stage
