"""The resumable map over units of work."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from corpus.documents.units import KILLED, map_units


def count_letters(unit: str, scratch: Path) -> dict[str, Any]:
    (scratch / "text").write_text(unit, "utf-8")
    return {"letters": len(unit)}


def fail_on_b(unit: str, scratch: Path) -> dict[str, Any]:
    (scratch / "text").write_text(unit, "utf-8")
    if unit == "b":
        raise RuntimeError("b is broken")
    return {"letters": len(unit)}


PROGRAM = """
import os, signal, sys
from pathlib import Path
from corpus.documents.units import map_units

def work(unit, scratch):
    (scratch / "text").write_text("half")
    if unit == sys.argv[3]:
        os.kill(os.getpid(), signal.SIGKILL)
    (scratch / "text").write_text(unit)
    return {"letters": len(unit)}

if __name__ == "__main__":
    print(map_units(work, ["a", "bb", "ccc"], Path(sys.argv[1]), workers=int(sys.argv[2])))
"""


def run_program(folder: Path, workers: int, deadly_unit: str = "") -> subprocess.CompletedProcess[str]:
    script = folder.with_suffix(".py")
    script.write_text(PROGRAM, "utf-8")
    command = [sys.executable, str(script), str(folder), str(workers), deadly_unit]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize("workers", [1, 2])
def test_counts_and_files_do_not_depend_on_workers(tmp_path: Path, workers: int) -> None:
    done = run_program(tmp_path / "units", workers)
    assert done.stdout.strip() == "[{'letters': 1}, {'letters': 2}, {'letters': 3}]", done.stderr
    assert [(tmp_path / "units" / f"unit-0000{n}" / "text").read_text() for n in range(3)] == ["a", "bb", "ccc"]


def test_finished_units_are_not_repeated_after_a_failure(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="b is broken"):
        map_units(fail_on_b, ["a", "b", "c"], tmp_path)
    finished = (tmp_path / "unit-00000" / "text").stat().st_mtime_ns
    assert map_units(count_letters, ["a", "b", "c"], tmp_path) == [{"letters": 1}] * 3
    assert (tmp_path / "unit-00000" / "text").stat().st_mtime_ns == finished


def test_a_killed_unit_is_done_again_from_nothing(tmp_path: Path) -> None:
    assert run_program(tmp_path / "units", 1, deadly_unit="bb").returncode == -signal.SIGKILL
    assert run_program(tmp_path / "units", 1).returncode == 0
    assert sorted(str(path.relative_to(tmp_path / "units")) for path in (tmp_path / "units").rglob("*.*")) == [
        f"unit-0000{n}/counts.json" for n in range(3)
    ]
    assert (tmp_path / "units" / "unit-00001" / "text").read_text() == "bb"


def test_the_end_of_the_process_of_the_last_unit_is_an_error(tmp_path: Path) -> None:
    assert KILLED in run_program(tmp_path / "units", 2, "ccc").stderr


def test_units_of_an_earlier_run_are_reported_and_only_these(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    map_units(count_letters, ["a", "bb"], tmp_path, title="counting")
    assert not caplog.messages
    map_units(count_letters, ["a", "bb", "ccc"], tmp_path, title="counting")
    assert caplog.messages == ["counting: 2 of 3 already finished by an earlier run"]
