"""``malmoi ensemble``: results, tables on the terminal, errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import run_command
from tests.finetune.ensemble.test_run import write_result


@pytest.fixture
def run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run with two models and two seeds in the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    out = tmp_path / "runs" / "mine" / "finetune"
    for seed, shares in ((1, [0.9, 0.4, 0.6, 0.4]), (2, [0.9, 0.9, 0.9, 0.4])):
        write_result(out, "one", seed, shares, averaged=3, hyperparameters={"average": "swa"})
        write_result(out, "two", seed, [0.4, 0.9, 0.2, 0.4])
    return out


def test_a_table_shows_members_and_ensembles_by_seed_and_their_means(
    run_folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    printed = run_command(capfd, "ensemble", "mine", "--task", "ynat")
    assert printed.code == 0, printed.errors
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in printed.output.splitlines()]
    by_seed = {(row[1], row[2]): row[4] for row in rows if row[0] == "ynat" and len(row) >= 6 and row[3] == "macro_f1"}
    assert sorted(by_seed) == [
        ("ensemble", "1"), ("ensemble", "2"), ("ensemble-all-seeds", "1"), ("one", "1"), ("one", "2"), ("two", "1"),
        ("two", "2"),
    ]  # fmt: skip
    made = [json.loads((run_folder / f"ynat/ensemble/seed-{n}/scores.json").read_text("utf-8")) for n in (1, 2)]
    assert [by_seed["ensemble", n] for n in "12"] == [f"{one['scores']['macro_f1']:.2f}" for one in made]
    assert "62.50 ± 17.68" in printed.output and "(ensemble of 4)" in " ".join(printed.output.split())


def test_impossible_ensembles_are_explained(run_folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for arguments, words in (
        (["mine", "--task", "ner"], "nothing to average (found: no results)"),
        (["mine", "--task", "ynat", "--model", "three"], "no result of three; results here: one, two"),
        (["yours", "--task", "ynat"], "no finetune folder"),
    ):
        assert words in run_command(capfd, "ensemble", *arguments).refused()
