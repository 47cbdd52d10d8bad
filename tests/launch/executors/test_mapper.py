"""The map on a simulated cluster gives the files and counts of the embedded map, and survives killed tasks."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest

from corpus.documents.errors import BadInput
from corpus.documents.units import map_units
from launch.errors import LaunchError
from launch.executors.task import Plan
from tests.launch.executors import conftest
from tests.launch.executors.conftest import contents, simulated_engine


@pytest.mark.parametrize("tasks", [1, 3, 50])
def test_files_and_counts_equal_the_embedded_map(toy: ModuleType, words: list[str], tmp_path: Path, tasks: int) -> None:
    expected = map_units(toy.shout, words, tmp_path / "embedded")
    assert simulated_engine(tasks)(toy.shout, words, tmp_path / "engine") == expected
    assert contents(tmp_path / "engine") == contents(tmp_path / "embedded")


def test_a_killed_task_is_an_error_and_the_next_run_does_only_what_is_missing(
    toy: ModuleType, words: list[str], tmp_path: Path
) -> None:
    work = partial(toy.die_once, deadly="나무", flag=tmp_path / "flag")
    with pytest.raises(LaunchError, match=r"units are missing \(unit 1: its process ended with SIGKILL .*memory"):
        simulated_engine()(work, words, tmp_path / "units")
    done = {path: path.stat().st_mtime_ns for path in (tmp_path / "units").glob("unit-?????/text")}
    assert len(done) == 5  # tasks 0 and 2 end theirs: units 0 3 6 and 2 5

    expected = map_units(toy.shout, words, tmp_path / "embedded")
    assert simulated_engine()(work, words, tmp_path / "units") == expected
    assert contents(tmp_path / "units") == contents(tmp_path / "embedded")
    assert {path: path.stat().st_mtime_ns for path in done} == done


def test_a_unit_that_was_deleted_is_made_again(toy: ModuleType, words: list[str], tmp_path: Path) -> None:
    expected = simulated_engine()(toy.shout, words, tmp_path)
    shutil.rmtree(tmp_path / "unit-00004")
    assert simulated_engine()(toy.shout, words, tmp_path) == expected
    assert (tmp_path / "unit-00004" / "text").read_text("utf-8") == "마을!"


def test_units_of_other_settings_are_never_reused(toy: ModuleType, words: list[str], tmp_path: Path) -> None:
    simulated_engine()(toy.shout, words, tmp_path)
    with pytest.raises(LaunchError, match="made with other settings or inputs"):
        simulated_engine()(partial(toy.shout, mark="?"), words, tmp_path)
    with pytest.raises(LaunchError, match="made with other settings or inputs"):
        simulated_engine()(toy.shout, words[:-1], tmp_path)


def test_a_run_may_change_its_engine(toy: ModuleType, words: list[str], tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        map_units(partial(toy.reject, bad=["다리"]), words, tmp_path / "units")
    expected = map_units(toy.shout, words, tmp_path / "embedded")
    assert simulated_engine()(toy.shout, words, tmp_path / "units") == expected
    shutil.rmtree(tmp_path / "units" / "unit-00000")
    assert map_units(toy.shout, words, tmp_path / "units") == expected


def test_bad_input_passes_through_with_the_message_of_the_first_unit(
    toy: ModuleType, words: list[str], tmp_path: Path
) -> None:
    work = partial(toy.reject, bad=["사슴", "다리"])
    with pytest.raises(BadInput, match=r"^다리: cannot be read; remove it$"):
        simulated_engine()(work, words, tmp_path)


def test_relative_paths_start_where_the_command_did(
    toy: ModuleType, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for word in words:
        Path(word).write_text(word, "utf-8")
    simulated_engine()(toy.copy, words, Path("units"))
    assert [path.read_text("utf-8")[:-1] for path in sorted(Path("units").glob("unit-*/text"))] == words


def test_finished_runs_start_nothing(
    toy: ModuleType, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = simulated_engine()(toy.shout, words, tmp_path)
    started: list[Plan] = []
    monkeypatch.setattr(conftest, "execute_here", lambda config, plan, home: started.append(plan))
    assert simulated_engine()(toy.shout, words, tmp_path) == expected
    assert not started
