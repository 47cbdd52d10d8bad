"""The tokenizer stage and pack through an engine: the bytes are those of processes on this machine.

The first tests use an engine that needs no optional package: another process, which knows only the plan, runs the tasks
from the last to the first, each with its units in reverse order.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from corpus.documents.units import MapUnits
from launch.executors.task import Plan, engine_home, finished_units, run_task, write_plan
from tests.launch.executors.conftest import build_and_pack, build_while_workers_die, simulated_engine

TASKS = 2
MAPS = ("count", "types", "units", *(f"uses-{number}" for number in range(4)), "fit")


@pytest.fixture(scope="module")
def machine() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        yield process


@pytest.fixture
def backwards(machine: ProcessPoolExecutor, tmp_path: Path) -> tuple[MapUnits, dict[str, int]]:
    """The engine, and the number of units of each map that it was given, by folder."""
    used: dict[str, int] = {}

    def engine(work: Callable[..., Any], units: Any, folder: Path, **options: Any) -> list[dict[str, Any]]:
        units, folder = list(units), folder.absolute()
        home = engine_home(work, units, folder)
        missing = [number for number in range(len(units)) if number not in finished_units(folder)]
        write_plan(home, Plan(work, units, missing[::-1], folder, Path.cwd()))
        assert [machine.submit(run_task, home, rank, TASKS).result() for rank in reversed(range(TASKS))] == [0, 0]
        used[str(folder.relative_to(tmp_path)).replace("/work", "")] = len(units)
        return [json.loads((folder / f"unit-{n:05}" / "counts.json").read_text("utf-8")) for n in range(len(units))]

    return engine, used


def test_another_process_in_another_order_leaves_the_same_bytes(
    shards: Path, built_here: dict[str, bytes], tmp_path: Path, backwards: tuple[MapUnits, dict[str, int]]
) -> None:
    engine, used = backwards
    assert {"tokenizer/vocab.txt", "tokens/tokens.bin"} <= built_here.keys()
    assert build_and_pack(tmp_path, shards, engine) == built_here
    assert used.keys() == {f"tokenizer/{name}" for name in MAPS} | {"tokens/units"}
    assert min(used.values()) >= TASKS, "each had work"


def test_local_processes_finish_a_build_started_on_a_cluster(
    shards: Path, built_here: dict[str, bytes], tmp_path: Path, backwards: tuple[MapUnits, dict[str, int]]
) -> None:
    def stops_half_way(work: Any, units: Any, folder: Path, **options: Any) -> list[dict[str, Any]]:
        if folder.name == "units":
            raise KeyboardInterrupt
        return backwards[0](work, units, folder, **options)

    with pytest.raises(KeyboardInterrupt):
        build_and_pack(tmp_path, shards, stops_half_way)
    assert list(tmp_path.glob("tokenizer/work/types/unit-*"))
    assert build_and_pack(tmp_path, shards, None) == built_here


@pytest.mark.slow
def test_a_cluster_leaves_the_same_bytes(shards: Path, built_here: dict[str, bytes], tmp_path: Path) -> None:
    assert build_and_pack(tmp_path, shards, simulated_engine(TASKS)) == built_here


@pytest.mark.slow
def test_tasks_that_are_killed_leave_the_same_bytes(
    toy: ModuleType, shards: Path, built_here: dict[str, bytes], tmp_path: Path
) -> None:
    engine, maps = simulated_engine(TASKS), {"count", "fit", "tokens-units"}
    assert build_while_workers_die(toy, tmp_path / "run", shards, engine, maps) == (built_here, maps)
