"""The index of benchmark files is built once, and never taken from the cache on trust."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from corpus.config import DecontaminateConfig
from corpus.decontamination import cache, report
from corpus.decontamination.index import ContaminationIndex
from corpus.decontamination.report import write_index

CONFIG = DecontaminateConfig()
QUIZ = "저녁이 되자 바람이 불고 푸른 구름이 산을 넘어왔다."


@pytest.fixture
def quiz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MALMOI_CACHE", str(tmp_path / "cache"))
    (tmp_path / "quiz.txt").write_text(QUIZ, "utf-8")
    return tmp_path / "quiz.txt"


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Files of which an index was built, for each time."""
    builds: list[Path] = []
    build = report._build

    def observed(config: DecontaminateConfig, benchmarks: list[Path], folder: Path) -> None:
        builds.append(benchmarks[0])
        build(config, benchmarks, folder)

    monkeypatch.setattr(report, "_build", observed)
    return builds


def write(quiz: Path, name: str, config: DecontaminateConfig = CONFIG) -> dict[str, bytes]:
    folder = write_index(config, [quiz], quiz.parent / name)
    assert folder
    assert ContaminationIndex.load(folder).find([QUIZ])
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_the_second_run_builds_nothing_and_has_the_same_files(quiz: Path, built: list[Path]) -> None:
    assert write(quiz, "one") == write(quiz, "two")
    assert len(built) == 1


def test_other_content_settings_or_names_are_other_entries(quiz: Path, built: list[Path]) -> None:
    write(quiz, "one")
    quiz.write_text(QUIZ + " 고양이 두 마리가 시장 골목에서 달아났다.", "utf-8")
    write(quiz, "two")
    write(quiz, "three", DecontaminateConfig(threshold=0.5))
    renamed = quiz.rename(quiz.with_name("other.txt"))
    write(renamed, "four")
    assert len(built) == 4


def test_the_cache_can_be_switched_off(quiz: Path, built: list[Path]) -> None:
    config = DecontaminateConfig(cache_index=False)
    assert write(quiz, "one", config) == write(quiz, "two", config)
    assert len(built) == 2
    assert not (quiz.parent / "cache").exists()


@pytest.mark.parametrize("harm", ["flip", "cut", "pickle", "missing", "list", "outside"])
def test_a_damaged_entry_is_built_again(quiz: Path, built: list[Path], harm: str) -> None:
    files = write(quiz, "one")
    [entry] = (quiz.parent / "cache" / "benchmark-index").iterdir()
    victim = entry / "entry_weight_E.npy"
    if harm == "flip":
        data = bytearray(victim.read_bytes())
        data[-3] ^= 1
        victim.write_bytes(data)
    elif harm == "cut":
        os.truncate(victim, 40)
    elif harm == "pickle":
        np.save(victim, np.array([{}], object), allow_pickle=True)
    elif harm == "missing":
        victim.unlink()
    elif harm == "list":
        (entry / cache.LIST_NAME).write_text("[1", "utf-8")
    else:
        (entry / cache.LIST_NAME).write_text('{"../../quiz.txt": "00"}', "utf-8")
    assert write(quiz, "two") == files == write(quiz, "three")
    assert len(built) == 2
    assert quiz.read_text("utf-8") == QUIZ


def test_only_the_newest_entries_are_kept(quiz: Path) -> None:
    for number in range(cache.KEPT_ENTRIES + 3):
        quiz.write_text(QUIZ * (number + 1), "utf-8")
        write(quiz, f"run-{number}")
    entries = list((quiz.parent / "cache" / "benchmark-index").iterdir())
    assert len(entries) == cache.KEPT_ENTRIES


def test_a_cache_that_cannot_be_written_is_no_error(
    quiz: Path, built: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MALMOI_CACHE", str(quiz / "below-a-file"))
    assert write(quiz, "one") == write(quiz, "two")
    assert len(built) == 2


def test_processes_that_build_at_once_agree(quiz: Path) -> None:
    with ProcessPoolExecutor(4) as pool:
        folders = list(pool.map(write, [quiz] * 8, [f"run-{n}" for n in range(8)]))
    assert all(files == folders[0] for files in folders)
    assert len(list((quiz.parent / "cache" / "benchmark-index").iterdir())) == 1
    assert write(quiz, "after") == folders[0]


def test_the_cache_stands_where_the_platform_keeps_caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MALMOI_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.cache_folder() == tmp_path / "malmoi"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache.cache_folder() == Path.home() / ".cache" / "malmoi"
