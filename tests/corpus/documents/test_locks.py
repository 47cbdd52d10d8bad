"""Locks and the processes that hold them: who lives, what a lock file may hold."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from corpus.documents.locks import (
    Process,
    current_process,
    hold_lock,
    parse_process,
    read_lock_holder,
    write_lock_holder,
)


def test_a_process_survives_its_json_form() -> None:
    process = current_process()
    assert parse_process(json.loads(json.dumps(process))) == process
    assert parse_process(["host", 1, 0]) == Process("host", 1, 0)
    assert parse_process(["host", 2**31 - 1, 5]) == Process("host", 2**31 - 1, 5)


@pytest.mark.parametrize(
    "value",
    [
        None, 7, "ab", [], ["host", 1], ["host", 1, 0, 0], [1, 1, 0], ["host", "1", 0], ["host", 1, "0"],
        ["host", 1, None], ["host", True, 0], ["host", 1.0, 0], ["host", 0, 0], ["host", -1, 0], ["host", 2**31, 0],
    ],
)  # fmt: skip
def test_other_values_are_no_process(value: Any) -> None:
    assert parse_process(value) is None


def test_only_the_own_host_can_tell_whether_a_process_lives() -> None:
    mine = current_process()
    assert mine.lives is True
    assert mine._replace(began=0).lives is True  # a start that is not known
    assert mine._replace(began=mine.began + 1).lives is False  # its number is used again
    assert mine._replace(host="elsewhere.invalid").lives is None
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert mine._replace(pid=child.pid, began=0).lives is False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
def test_a_process_that_ended_and_was_not_collected_does_not_live() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    try:
        assert current_process()._replace(pid=child.pid, began=0).lives is False
    finally:
        child.wait()


def test_the_holder_is_in_the_lock_file(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert read_lock_holder(path) is None
    write_lock_holder(path)
    assert not path.exists()  # only a lock makes the file
    with hold_lock(path) as is_ours:
        path.write_text("x" * 500)
        write_lock_holder(path)
        assert is_ours and read_lock_holder(path) == current_process()
    for text in ("", "no JSON", "[" * 100_000, '["host", 0, 0]'):
        path.write_text(text)
        assert read_lock_holder(path) is None


def test_a_held_lock_is_refused_or_waited_for(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from corpus.documents.locks import hold_lock\n"
    code += "with hold_lock(Path(sys.argv[1]), waits=len(sys.argv) > 2) as is_ours: print(is_ours)"
    command = [sys.executable, "-c", code, str(tmp_path / "lock")]
    with hold_lock(tmp_path / "lock") as is_ours:
        assert is_ours
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "False\n"
        waiting = subprocess.Popen([*command, "waits"], stdout=subprocess.PIPE, text=True)
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(0.3)
    assert waiting.communicate(timeout=60)[0] == "True\n"
