"""The map through datatrove's local executor against the embedded map, and the faults of datatrove it must not have."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest

from corpus.documents.errors import BadInput
from corpus.documents.units import map_units
from launch.config import LaunchConfig
from launch.errors import LaunchError
from launch.executors import mapper
from launch.executors.mapper import engine_mapper
from tests.launch.executors.conftest import contents

pytest.importorskip("datatrove")
LOCAL = LaunchConfig(engine="datatrove-local", tasks=3)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("tasks", [1, 3, 50])
def test_files_and_counts_equal_the_embedded_map(
    toy: ModuleType, words: list[str], tmp_path: Path, workers: int, tasks: int
) -> None:
    expected = map_units(toy.shout, words, tmp_path / "embedded")
    mapper = engine_mapper(LaunchConfig(engine="datatrove-local", tasks=tasks))
    assert mapper(toy.shout, words, tmp_path / "engine", workers=workers) == expected
    assert contents(tmp_path / "engine") == contents(tmp_path / "embedded")


def test_a_killed_task_is_an_error_and_the_next_run_does_only_what_is_missing(
    toy: ModuleType, words: list[str], tmp_path: Path
) -> None:
    work = partial(toy.die_once, deadly="나무", flag=tmp_path / "flag")
    with pytest.raises(LaunchError, match=r"units are missing \(unit 1: its process ended with SIGKILL .*memory"):
        engine_mapper(LOCAL)(work, words, tmp_path / "units", workers=2)
    done = {path: path.stat().st_mtime_ns for path in (tmp_path / "units").glob("unit-?????/text")}
    assert len(done) == 5  # tasks 0 and 2 end theirs: units 0 3 6 and 2 5

    expected = map_units(toy.shout, words, tmp_path / "embedded")
    assert engine_mapper(LOCAL)(work, words, tmp_path / "units", workers=2) == expected
    assert contents(tmp_path / "units") == contents(tmp_path / "embedded")
    assert {path: path.stat().st_mtime_ns for path in done} == done


def test_marks_of_completed_tasks_do_not_hide_missing_units(toy: ModuleType, words: list[str], tmp_path: Path) -> None:
    expected = engine_mapper(LOCAL)(toy.shout, words, tmp_path)
    marks = list(tmp_path.glob("engine-*/completions/*"))
    assert len(marks) == 3
    shutil.rmtree(tmp_path / "unit-00004")
    assert engine_mapper(LOCAL)(toy.shout, words, tmp_path) == expected
    assert (tmp_path / "unit-00004" / "text").read_text("utf-8") == "마을!"


def test_units_of_other_settings_are_never_reused(toy: ModuleType, words: list[str], tmp_path: Path) -> None:
    engine_mapper(LOCAL)(toy.shout, words, tmp_path)
    with pytest.raises(LaunchError, match="made with other settings or inputs"):
        engine_mapper(LOCAL)(partial(toy.shout, mark="?"), words, tmp_path)
    with pytest.raises(LaunchError, match="made with other settings or inputs"):
        engine_mapper(LOCAL)(toy.shout, words[:-1], tmp_path)


def test_a_run_begun_by_one_engine_is_ended_by_another(toy: ModuleType, words: list[str], tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        map_units(partial(toy.reject, bad=["다리"]), words, tmp_path / "units")
    expected = map_units(toy.shout, words, tmp_path / "embedded")
    assert engine_mapper(LOCAL)(toy.shout, words, tmp_path / "units") == expected
    shutil.rmtree(tmp_path / "units" / "unit-00000")
    assert map_units(toy.shout, words, tmp_path / "units") == expected


def test_bad_input_passes_through_with_the_message_of_the_first_unit(
    toy: ModuleType, words: list[str], tmp_path: Path
) -> None:
    work = partial(toy.reject, bad=["사슴", "다리"])
    with pytest.raises(BadInput, match=r"^다리: cannot be read; remove it$"):
        engine_mapper(LOCAL)(work, words, tmp_path, workers=2)


def test_text_of_a_failing_document_reaches_no_file_and_no_message(
    toy: ModuleType, words: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(LaunchError, match=r"unit 0: ValueError at .*toy_work\.py:\d+ \(stumble\)") as caught:
        engine_mapper(LOCAL)(toy.stumble, words, tmp_path, workers=2)
    printed = "".join(capfd.readouterr())
    logs = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.name != "plan.pickle"]
    assert any(b"Traceback" in log for log in logs)  # datatrove has logged its part
    assert not any(b"010-0000" in log for log in [*logs, str(caught.value).encode(), printed.encode()])


def test_relative_paths_start_where_the_command_did(
    toy: ModuleType, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for word in words:
        Path(word).write_text(word, "utf-8")
    engine_mapper(LOCAL)(toy.copy, words, Path("units"), workers=2)
    assert [path.read_text("utf-8")[:-1] for path in sorted(Path("units").glob("unit-*/text"))] == words


def test_finished_runs_start_nothing(
    toy: ModuleType, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = engine_mapper(LOCAL)(toy.shout, words, tmp_path)
    monkeypatch.setattr(mapper, "EXECUTE", {})
    assert engine_mapper(LOCAL)(toy.shout, words, tmp_path) == expected
