"""Generative models in the report of a run, compared with its encoders; answers are escaped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from launch.conduct import run_stage
from launch.manifest import Head, finish
from launch.pipeline import STAGES
from launch.recipe import load_recipe
from launch.report.run import run
from tests.launch.fake_results import fake_result, write_results

EVIL = "<script>alert(1)</script>\x1b[31m|정치"


def generative(task: str, **more: Any) -> dict[str, Any]:
    """A result of ``malmoi llm``, invented."""
    found = fake_result(task, "openai-api/local/마루", "0-shot", 1)
    for key in ("hyperparameters", "losses", "steps", "selected", "device", "peak_mib", "recipe"):
        del found[key]
    return found | {
        "method": "generation", "shots": 0, "parse_rate": 97.5, "unanswered": 2, "price": 0.125, "seconds": 61.0,
        "tokens": {"in": 120_000, "out": 4_000, "told_for": 100}, **more,
    }  # fmt: skip


def test_one_table_holds_both_with_parse_rate_tokens_and_price(tmp_path: Path):
    results = [fake_result("ynat", "model", "", 1), generative("ynat"), fake_result("klue-nli", "model", "", 1)]
    write_results(tmp_path, iter(results))
    (tmp_path / "report").mkdir()
    run(load_recipe("smoke"), tmp_path, tmp_path / "report")
    page = (tmp_path / "report" / "report.md").read_text("utf-8")
    section = page.partition("## Generative models")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ynat")]
    assert len(rows) == 2 and "klue-nli" not in section  # nobody asked a generative model that task
    own = next(row for row in rows if "마루" in row)
    for said in ("97.5 %", "120,000<br>4,000", "61 s", "0.1250"):
        assert said in own
    assert "2 questions have no answer" in section
    assert "마루" not in page.partition("### Cost")[2].partition("\n#")[0]  # nothing was trained


def test_what_a_model_says_is_escaped_on_both_pages(tmp_path: Path):
    wrong = {
        "n": 1, "wrong": 1, "sorted_by": None,
        "samples": [{"guid": "g-1", "texts": {"title": "제목"}, "gold": ["정치"], "predicted": [EVIL], "value": None}],
    }  # fmt: skip
    write_results(tmp_path, iter([generative("ynat")]))
    place = next(tmp_path.rglob("scores.json")).with_name("errors.json")
    import json

    place.write_text(json.dumps(wrong, ensure_ascii=False), "utf-8")
    (tmp_path / "report").mkdir()
    run(load_recipe("smoke"), tmp_path, tmp_path / "report")
    for name in ("report.md", "report.html"):
        page = (tmp_path / "report" / name).read_text("utf-8")
        assert "alert(1)" in page
        assert "<script>alert" not in page and "\x1b" not in page


def test_a_report_older_than_a_result_is_made_again(tmp_path: Path) -> None:
    stage = next(stage for stage in STAGES if stage.name == "report")
    recipe = load_recipe("smoke", ["finetune.models=klue/roberta-base"])
    write_results(tmp_path, iter([fake_result("ynat", "model", "", 1)]))
    finish(tmp_path / "finetune", Head("finetune", {}, {}), {}, 1.0, 1)
    assert run_stage(stage, recipe, tmp_path)
    assert not run_stage(stage, recipe, tmp_path)
    write_results(tmp_path, iter([generative("ynat")]))  # as malmoi llm does
    assert run_stage(stage, recipe, tmp_path)
    assert "마루" in (tmp_path / "report" / "report.md").read_text("utf-8")
    assert not run_stage(stage, recipe, tmp_path)
