"""The corpus stage through every engine: each file it leaves has the bytes of the embedded runner's."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from corpus.run import CorpusInputs
from launch.config import LaunchConfig
from launch.errors import LaunchError
from launch.executors.mapper import engine_mapper
from tests.launch.executors.conftest import run_corpus

pytest.importorskip("datatrove")
LOCAL = engine_mapper(LaunchConfig(engine="datatrove-local", tasks=4))


def test_a_run_through_datatrove_leaves_the_same_bytes(texts: CorpusInputs, tmp_path: Path) -> None:
    counts, files = run_corpus(tmp_path / "embedded", texts)
    assert counts["documents"] > 50 and any(name.startswith("documents/shard-00002") for name in files)
    assert run_corpus(tmp_path / "engine", texts, workers=2, map_units=LOCAL) == (counts, files)


def test_a_killed_task_of_the_stage_leaves_the_same_bytes_after_the_next_run(
    toy: ModuleType, texts: CorpusInputs, tmp_path: Path
) -> None:
    def deadly(work: Any, *arguments: Any, **options: Any) -> list[dict[str, Any]]:
        return LOCAL(partial(toy.die_after_work, work=work, flag=tmp_path / "flag"), *arguments, **options)

    with pytest.raises(LaunchError, match="SIGKILL"):
        run_corpus(tmp_path / "engine", texts, workers=2, map_units=deadly)
    assert list((tmp_path / "engine").glob(".work-*/clean/unit-?????"))
    resumed = run_corpus(tmp_path / "engine", texts, workers=2, map_units=deadly)
    assert resumed == run_corpus(tmp_path / "embedded", texts)
