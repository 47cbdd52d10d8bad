"""The corpus stage on a cluster: every file equals that of a run on one machine."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from corpus.run import CorpusInputs
from launch.errors import LaunchError
from tests.launch.executors.conftest import run_corpus, simulated_engine

ENGINE = simulated_engine(tasks=2)


def test_a_killed_task_of_the_stage_leaves_the_same_bytes_after_the_next_run(
    toy: ModuleType, texts: CorpusInputs, tmp_path: Path
) -> None:
    def deadly(work: Any, *arguments: Any, **options: Any) -> list[dict[str, Any]]:
        return ENGINE(partial(toy.die_after_work, work=work, flag=tmp_path / "flag"), *arguments, **options)

    with pytest.raises(LaunchError, match="SIGKILL"):
        run_corpus(tmp_path / "engine", texts, map_units=deadly)
    assert list((tmp_path / "engine").glob(".work-*/clean/unit-?????"))
    resumed = run_corpus(tmp_path / "engine", texts, map_units=deadly)
    counts, files = run_corpus(tmp_path / "embedded", texts)
    assert counts["documents"] > 50 and any(name.startswith("documents/shard-00002") for name in files)
    assert resumed == (counts, files)
