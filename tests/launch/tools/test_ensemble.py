"""``malmoi ensemble``: results, tables on the terminal and in Markdown, errors."""

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


def test_a_table_shows_members_ensembles_and_what_they_gain(
    run_folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shown = run_command(capfd, "ensemble", "mine", "--task", "ynat", "--out", "table.md")
    assert shown.code == 0, shown.errors
    lines = Path("table.md").read_text("utf-8").split("\n")
    assert lines[0].startswith("**ynat, protocol malmoi, 4 examples of dev")
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| recipe settings")
    ]
    assert [[row[1], row[2], row[-1]] for row in cells[:7]] == [
        ["1", "one", "swa of 3"], ["1", "two", "last weights"], ["1", "ensemble", "2 members"],
        ["2", "one", "swa of 3"], ["2", "two", "last weights"], ["2", "ensemble", "2 members"],
        ["1 to 2", "ensemble-all-seeds", "4 members"],
    ]  # fmt: skip
    made = [json.loads((run_folder / f"ynat/ensemble/seed-{n}/scores.json").read_text("utf-8")) for n in (1, 2)]
    assert [float(cells[row][3]) for row in (2, 5)] == [round(one["scores"]["macro_f1"], 2) for one in made]
    gains = [one["scores"]["macro_f1"] - right for one, right in zip(made, (50.0, 75.0), strict=True)]
    by_name = {row[1]: row for row in cells[7:]}
    assert by_name["one"][3] == "62.50 ± 17.68" and by_name["one"][-1] == ""
    assert by_name["ensemble"][-1].startswith(f"{sum(gains) / 2:+.2f} ± ")
    assert "Mean over the seeds" in shown.output and "ensemble-all-seeds" in shown.output


def test_impossible_ensembles_are_explained(run_folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for arguments, words in (
        (["mine", "--task", "ner"], "nothing to average (no results)"),
        (["mine", "--task", "ynat", "--model", "three"], "no result of three; there are some of one, two"),
        (["mine", "--task", "ynat", "--settings", "slow"], "no results of these settings"),
        (["mine", "--task", "ynat", "--out", "table.txt"], "ends in .md"),
        (["yours", "--task", "ynat"], "no finetune folder"),
    ):
        assert words in run_command(capfd, "ensemble", *arguments).refused()
