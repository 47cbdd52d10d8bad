"""The report of a search: what is on the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from corpus.card.korean import translate_html
from finetune.config import FinetuneConfig
from finetune.search.grid import combinations
from finetune.search.run import Study, trial_config, write_study
from launch.report.blocks import Table
from launch.report.run import render
from launch.report.trainings import read_studies, search_sections

SPACE: dict[str, Any] = {
    "lr": (1e-4, 3e-4), "epochs": (1, 2, 4), "batch_size": None, "warmup_share": None, "weight_decay": None
}  # fmt: skip


def write(run: Path, task: Any = "ynat", **search: Any) -> None:
    """A study of six trials whose scores are 50, 51, …; the last has none."""
    config = FinetuneConfig(search={"method": "random", "trials": 8, "space": SPACE, **search})
    scored_on = "20% of the training examples"
    study = Study(task, "<b>", "model", trial_config(config, task), "macro_f1", scored_on, {}, "fp32")
    trials = []
    for number, values in enumerate(combinations(config.search)[:6]):
        outcome = {"state": "complete", "score": 50.0 + number} if number < 5 else {"state": "failed", "score": None}
        trials.append({"number": number, "values": values, **outcome, "seconds": 60.0, "folder": "trial-1"})
    write_study(study, trials, run / "finetune-search")


def shown(run: Path) -> str:
    return render("page.html.j2", {"title": "t", "about": "", "verdict": [], "stages": [], "links": [],
                                   "sections": search_sections(run)})  # fmt: skip


def test_a_run_without_a_search_has_no_section(tmp_path: Path) -> None:
    assert search_sections(tmp_path) == []


def test_each_study_has_its_best_trial(tmp_path: Path) -> None:
    write(tmp_path, "wos")
    write(tmp_path)
    (section,) = search_sections(tmp_path)
    assert [about["task"] for about in read_studies(tmp_path)] == ["ynat", "wos"]
    (table,) = [block for block in section.blocks if isinstance(block, Table)]
    assert [row[3] for row in table.rows] == ["6 of 8"] * 2 and table.rows[0][5] == "54.00"
    html = shown(tmp_path)
    assert "&lt;b&gt;" in html and "<b>," not in html
    assert '<h2 id="search">탐색</h2>' in translate_html(html)


def test_a_search_on_dev_gets_a_warning(tmp_path: Path) -> None:
    write(tmp_path)
    assert "Selected on dev" not in shown(tmp_path)
    write(tmp_path, select_on="dev")
    assert "Selected on dev" in shown(tmp_path)
