"""The doctor: every check answers with a line, and a failing check names its mend."""

from __future__ import annotations

import pytest

from launch import doctor
from launch.doctor import Check


@pytest.mark.parametrize(
    "check",
    [doctor.check_python, doctor.check_packages, doctor.check_guard, doctor.check_cores, doctor.check_memory,
     doctor.check_disk, doctor.check_dictionary, doctor.check_two_processes],
)  # fmt: skip
def test_this_machine_passes(check: object) -> None:
    found = check()  # type: ignore[operator]
    assert found.is_well, found


def test_failing_check_stops_the_doctor_and_shows_the_mend(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [Check("one", True, "fine"), Check("two", False, "broken", "mend it"), Check("three", None, "no GPU")]
    monkeypatch.setattr(doctor, "_checks", lambda: iter(lines))
    assert not doctor.examine()
    output = capsys.readouterr().out
    assert "✓ one" in output
    assert "✗ two" in output
    assert "→ mend it" in output


def test_check_that_crashes_is_a_cross(monkeypatch: pytest.MonkeyPatch) -> None:
    def check_disk() -> Check:
        raise RuntimeError("no such device")

    monkeypatch.setattr(doctor, "check_disk", check_disk)
    monkeypatch.setattr(doctor, "check_two_processes", lambda: Check("two", True, "left out: it takes seconds"))
    crashed = [check for check in doctor._checks() if check.is_well is False]
    assert [check.name for check in crashed] == ["disk"]
