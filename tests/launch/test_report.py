"""The report: verdicts, tables of scores, escaped text, Markdown and HTML from the same blocks, Korean pages."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.card.korean import translate, translate_html
from finetune.queue.jobs import digest
from launch.config import LaunchConfig
from launch.report import scores, stages, trainings
from launch.report.blocks import NOTES, Block, Section, Table, Text
from launch.report.results import Results, read_results, read_scores
from launch.report.run import render, result_sections
from launch.report.scores import verdict
from launch.report.stages import Curve, line_chart, ticks


def result(
    task: str, score: float | None, constant: float | None, is_official: bool = False, **more: Any
) -> dict[str, Any]:
    return {
        "task": task, "model": "model", "seed": 1, "headline": "accuracy", "n": 10, "n_train": 40, "split": "dev",
        "is_official_dev": is_official, "scores": {"accuracy": score}, "constant": {"accuracy": constant},
        "intervals": {"accuracy": None}, "paper_dev": {"klue/roberta-base": {"accuracy": 85.5}}, "protocol": "malmoi",
        **more,
    }  # fmt: skip


def blocks_of(*scores: dict[str, Any], stale: Sequence[dict[str, Any]] = ()) -> list[Block]:
    return [block for section in result_sections(Results(scores, stale)) for block in section.blocks]


def verdict_on(scores: Sequence[dict[str, Any]]) -> list[str]:
    return verdict(Results(scores).main)


def tables_of(*scores: dict[str, Any]) -> list[Table]:
    return [block for block in blocks_of(*scores) if isinstance(block, Table)]


def texts_of(*scores: dict[str, Any]) -> str:
    return " ".join(block.text for block in blocks_of(*scores) if isinstance(block, Text))


def test_a_task_counts_as_better_only_if_the_whole_interval_is_above_the_baseline() -> None:
    better, unclear, worse = verdict_on([
        result("klue-nli", 60.0, 33.3, intervals={"accuracy": [52.0, 68.0]}),
        result("ynat", 9.0, 3.9, intervals={"accuracy": [3.9, 14.0]}),
        result("klue-re", 1.0, 20.0, intervals={"accuracy": [0.0, 2.0]}),
    ])  # fmt: skip
    assert better.startswith("Better than both baselines on 1 of 3 tasks") and better.endswith(
        "klue-nli (accuracy +26.7)."
    )
    assert unclear == "No clear difference from the better baseline: ynat (accuracy +5.1)."
    assert worse == "Worse than the better baseline: klue-re (accuracy -19.0)."


def test_seeds_that_disagree_give_no_clear_difference() -> None:
    scores = [
        result("ynat", value, 50.0, seed=seed, intervals={"accuracy": [value - 3, value + 3]})
        for seed, value in ((1, 60.0), (2, 52.0))
    ]
    assert "No clear difference" in verdict_on(scores)[0]
    assert "Better" in verdict_on(scores[:1])[0]


def test_a_score_without_interval_or_value_gives_no_clear_difference() -> None:
    assert verdict_on([result("klue-sts", None, None), result("ynat", 90.0, 4.0)]) == [
        "No clear difference from the better baseline: klue-sts (accuracy undefined), ynat (accuracy +86.0)."
    ]


def test_auprc_has_no_constant_baseline() -> None:
    more = {"headline": "micro_f1", "paper_dev": {"klue/roberta-base": {"micro_f1": 67.0, "auprc": 68.0}}}
    found = result("klue-re", 0.0, 0.0) | more | {
        "scores": {"micro_f1": 33.0, "auprc": 36.9}, "constant": {"micro_f1": 0.0, "auprc": 52.8}, "intervals": {},
    }  # fmt: skip
    rows = tables_of(found)[0].rows
    assert [row[4] for row in rows] == ["0.00", "–"]


def test_published_scores_are_shown_only_for_the_official_dev_file() -> None:
    official, other = (tables_of(result("klue-nli", 60.0, 33.3, is_official))[0] for is_official in (True, False))
    assert "85.50" in official.rows[0]
    assert "85.50" not in other.rows[0]
    assert not any("Table 36" in head for head in other.heads)


def test_shared_facts_are_stated_once_and_varying_facts_are_columns() -> None:
    files = {"dev": {"file": "ynat-v1.1_dev.json", "sha256": "0" * 64, "version": "official v1.1"}}
    one = result("ynat", 60.0, 33.3, data=files, selected=None)
    assert "All results: encoder model, seed 1, protocol malmoi, last weights, data version official v1.1." in texts_of(
        one
    )
    table = tables_of(one, result("klue-nli", 60.0, 33.3))[0]
    assert table.heads[:3] == ["task", "data", "metric"]
    assert [row[1] for row in table.rows] == ["official v1.1", "unknown"]
    assert ["ynat", "dev", "ynat-v1.1_dev.json", "official v1.1", "0" * 12] in tables_of(one)[-1].rows


def test_warnings_about_comparability_come_first() -> None:
    def warned(**more: Any) -> str:
        first = result("ynat", 60.0, 4.0, is_official=True)
        blocks = blocks_of(first, result("klue-nli", 60.0, 33.3, **more))
        lines = [block.text for block in blocks if isinstance(block, Text) and block.kind == "warning"]
        assert all("klue-nli" in line and "ynat" not in line for line in lines)
        assert all(isinstance(block, Text) for block in blocks[: len(lines)])
        return " ".join(lines)

    assert not warned(is_official=True)
    assert "Not scored on the official dev set" in warned()
    assert "with its bugs" in warned(is_official=True, protocol="klue-baseline")
    chosen = warned(is_official=True, selected={"by": "accuracy", "score": 60.0, "step": 80, "evaluations": 16})
    assert "selected by their score on the evaluation examples" in chosen


SEEDS = [result("ynat", score, 4.0, is_official=True, seed=seed) for seed, score in ((1, 60.0), (2, 62.0), (3, 64.0))]
OTHER = result("ynat", 70.0, 4.0, is_official=True, model="klue/roberta-base")


def test_models_and_seeds_are_compared_by_task() -> None:
    first, *others = tables_of(*SEEDS, OTHER, result("klue-nli", 50.0, 33.3))
    assert first.heads == [
        "task",
        "metric",
        "model",
        "klue/roberta-base",
        "constant",
        "counting",
        "klue/roberta-base, Table 36",
    ]
    assert first.rows == [
        ["ynat", "accuracy", "62.00 ± 2.00", "70.00", "4.00", "–", "85.50"],
        ["klue-nli", "accuracy", "50.00", "–", "33.30", "–", "–"],
    ]
    assert "1 or 3 seeds" in first.title
    every = next(table for table in others if table.title == "Every result")
    assert every.folded and len(every.rows) == 5
    assert not any("average" in row[0] for table in others for row in table.rows)


def test_an_undefined_score_of_one_seed_makes_the_mean_undefined() -> None:
    table = tables_of(*SEEDS[:2], result("ynat", None, 4.0, seed=3))[0]
    assert table.rows[0][2] == "–"


def test_results_on_other_examples_or_protocols_are_not_mixed() -> None:
    split = tables_of(SEEDS[0], result("ynat", 90.0, 4.0, seed=2, split="20% of dev"))[0]
    assert [row[2] for row in split.rows] == ["60.00", "90.00"]
    table = tables_of(SEEDS[0], result("ynat", 90.0, 4.0, protocol="klue-baseline"))[0]
    assert table.heads[2:4] == ["model, malmoi", "model, klue-baseline"]
    assert table.rows[0][2:4] == ["60.00", "90.00"]


def test_the_verdict_names_each_model() -> None:
    ours, other = verdict_on([*SEEDS, OTHER | {"intervals": {"accuracy": [60.0, 80.0]}}])
    assert ours == "model: no clear difference from the better baseline: ynat (accuracy +58.0)."
    assert other.startswith("klue/roberta-base: better than both baselines on 1 of 1 tasks")


def test_confusion_matrices_are_coloured_by_row() -> None:
    confusion = {"confusion": [{"gold": "가", "가": 3, "나": 1}, {"gold": "나", "가": 0, "나": 0}]}
    found = result("ynat", 60.0, 4.0, tables=confusion)
    (table,) = (block for block in blocks_of(found) if isinstance(block, Table) and "confusion" in block.title)
    assert table.heat == [[0.75, 0.25], [0.0, 0.0]] and not table.folded
    html = render("page.html.j2", page(*result_sections(Results([found]))))
    assert '<td class="heat right" style="--heat:0.750">3</td>' in html and html.count('class="heat right"') == 2


CLASSES = {"classes": [{"class": "사회", "gold": 1200, "f1": 81.254}, {"class": "경제", "gold": 0, "f1": None}]}
ERRORS = {
    "task": "ynat", "n": 200, "wrong": 30, "sorted_by": "probability", "samples": [{
        "guid": "ynat-v1_dev_00001", "texts": {"title": "<b>새 도서관</b> | *연다*"}, "gold": ["사회"],
        "predicted": [f"자리 {n}" for n in range(15)], "value": 0.987,
    }],
}  # fmt: skip


def test_tables_by_class_are_folded() -> None:
    table = next(table for table in tables_of(result("ynat", 60.0, 4.0, tables=CLASSES)) if "classes" in table.title)
    assert table.folded and table.title == "ynat: classes"
    assert (table.heads, list(table.numbers)) == (["class", "gold", "f1"], [1, 2])
    assert table.rows == [["사회", "1,200", "81.25"], ["경제", "0", "–"]]


def test_tables_of_wrong_predictions_are_folded() -> None:
    found = [result("ynat", 60.0, 4.0, seed=seed, errors=ERRORS) for seed in (1, 2)]
    (table,) = (table for table in tables_of(*found) if table.is_text)
    assert table.title == "ynat, seed 1: 1 of 30 errors in 200 examples, most confident first"
    assert table.heads == ["example", "gold", "predicted", "probability", "guid"]
    (row,) = table.rows
    assert (row[1], row[3], row[4]) == ("사회", "0.99", "ynat-v1_dev_00001")
    assert row[2].split("\n")[-2:] == ["자리 11", "… and 3 more"]


def test_text_of_examples_cannot_break_either_page() -> None:
    sections = result_sections(Results([result("ynat", 60.0, 4.0, model="<m>`[x](y)", errors=ERRORS, tables=CLASSES)]))
    html, markdown = render("page.html.j2", page(*sections)), render("page.md.j2", page(*sections))
    assert "&lt;b&gt;새 도서관&lt;/b&gt;" in html and "&lt;m&gt;" in html
    assert "&lt;b&gt;새 도서관&lt;/b&gt; \\| \\*연다\\* |" in markdown
    assert "encoder &lt;m&gt;\\`\\[x\\](y)" in markdown
    assert "자리 0<br>자리 1<br>" in markdown


def test_errors_are_read_with_the_scores(tmp_path: Path) -> None:
    for seed in (1, 2):
        folder = tmp_path / "finetune" / "ynat" / "model" / f"seed-{seed}"
        folder.mkdir(parents=True)
        (folder / "scores.json").write_text(json.dumps(result("ynat", 60.0, 4.0, seed=seed)), "utf-8")
    (folder / "errors.json").write_text(json.dumps(ERRORS), "utf-8")
    assert [found["errors"] for found in read_scores(tmp_path)] == [None, ERRORS]


def test_results_of_different_settings_are_separate(tmp_path: Path) -> None:
    for settings, seed, score in (("", 1, 60.0), ("", 2, 62.0), ("lr-1e-05", 1, 70.0)):
        folder = tmp_path / "finetune" / "ynat" / "model" / settings / f"seed-{seed}"
        folder.mkdir(parents=True)
        content = result("ynat", score, 4.0, seed=seed, settings=settings)
        (folder / "scores.json").write_text(json.dumps(content), "utf-8")
    scores = read_scores(tmp_path)
    assert [(found["settings"], found["seed"]) for found in scores] == [("", 1), ("", 2), ("lr-1e-05", 1)]
    compared, every, *others = tables_of(*scores)
    assert list(compared.heads) == ["task", "metric", "model", "constant", "counting"]
    assert compared.rows[0][2] == "61.00 ± 1.41"
    (settings,) = (table for table in others if table.title.startswith("Settings"))
    assert list(settings.heads) == ["task", "metric", "recipe settings", "lr-1e-05"]
    assert settings.rows == [["ynat", "accuracy", "61.00 ± 1.41", "70.00\n+9.00"]]
    assert [row[1:3] for row in every.rows] == [["recipe settings", "1"], ["recipe settings", "2"], ["lr-1e-05", "1"]]


def test_results_of_a_changed_encoder_are_named_but_not_shown(tmp_path: Path) -> None:
    encoder = tmp_path / "encoder"
    encoder.mkdir()
    (encoder / "config.json").write_text("{}", "utf-8")
    (tmp_path / "model").mkdir()
    known = {str(encoder): digest(str(encoder)), f"fresh:{encoder}": digest(f"fresh:{encoder}"), "model": "another"}
    scores = [result("ynat", 60.0, 4.0, model=name, encoder=found) for name, found in known.items()]
    scores += [result("ynat", 60.0, 4.0, model="nobody/knows", encoder="nobody/knows"), result("wos", 1.0, 0.0)]
    for number, one in enumerate(scores):
        folder = tmp_path / "finetune" / one["task"] / f"encoder-{number}" / "seed-1"
        folder.mkdir(parents=True)
        (folder / "scores.json").write_text(json.dumps(one), "utf-8")
    assert [one["model"] for one in read_results(tmp_path).stale] == ["model"]
    (encoder / "config.json").write_text('{"hidden_size": 8}', "utf-8")
    results = read_results(tmp_path)
    assert [one["model"] for one in results.stale] == list(known)
    texts = [block for block in result_sections(results)[0].blocks if isinstance(block, Text)]
    [warning] = [text.text for text in texts if text.text.startswith("Not shown")]
    assert f"; ynat, fresh:{encoder}, seed 1; ynat, model, seed 1. Run" in warning
    assert translate(warning).startswith("인코더의 파일이")


def page(*sections: Section) -> dict[str, Any]:
    return {"title": "t", "about": "", "verdict": [], "stages": [], "sections": sections, "links": []}


def test_text_of_the_corpus_cannot_break_either_page() -> None:
    section = Section("<s>", [Text("<script>alert(1)</script>"), Table(["a"], [["x | y\nz"]])])
    html, markdown = render("page.html.j2", page(section)), render("page.md.j2", page(section))
    assert "<script>" not in html
    assert "x \\| y<br>z" in markdown
    assert "<script>" not in markdown


def test_html_page_needs_nothing_from_outside() -> None:
    html = render("page.html.j2", page(Section("s", [Text("말모이")])))
    assert not re.search(r"""src\s*=|href="[^#]|url\(|@import""", html)
    assert '"Noto Sans KR"' in html


def test_every_section_has_an_anchor_and_folded_sections_are_closed() -> None:
    html = render("page.html.j2", page(Section("Personal data"), Section("How this was made", is_folded=True)))
    assert '<a href="#personal-data">Personal data</a>' in html and '<h2 id="personal-data">' in html
    assert '<details class="section" id="how-this-was-made">' in html


FIXED = [
    *(text for head, _, _, curve in stages.HELD_OUT_COLUMNS.values() for text in (head, curve) if text), *stages.SIZES,
    *scores.NUMBERS, *scores.GENERATIVE_HEADS, *trainings.HYPERPARAMETERS.values(), "gold ↓ predicted →",
    f"{NOTES['scores']} {NOTES['paper']}", f"{NOTES['answers']} {NOTES['encoders']}",
    *(NOTES[name].format("ynat", count=1, total=2, gains="ynat (accuracy +1)")
      for name in sorted(NOTES.keys() - {"paper", "answers", "encoders"})),
]  # fmt: skip


@pytest.mark.parametrize("text", FIXED, ids=[text[:40] for text in FIXED])
def test_every_head_and_note_has_a_korean_translation(text: str) -> None:
    assert re.search("[가-힣]", translate(text))


def test_equal_numbers_give_equal_charts() -> None:
    lines = [Curve([1, 2], [9.0, 8.0]), Curve([2], [8.5], "second")]
    chart = line_chart(lines, "step", "loss <nats>")
    assert chart == line_chart(lines, "step", "loss <nats>")
    assert chart.startswith("<svg") and "loss &lt;nats&gt;" in chart and chart.count("<circle") == 1
    assert line_chart([Curve([1], [0.0])], "", "one value").count("<circle") == 1


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_are_few_and_span_the_values(low: float, span: float) -> None:
    found = ticks(low, low + span)
    slack = 1e-6 * max(1.0, abs(low), span)
    assert found[0] <= low + slack and found[-1] >= low + span - slack
    assert 2 <= len(found) <= 9 and found == sorted(found)


def test_notes_of_the_scores_are_translated_as_a_whole() -> None:
    for is_official in (True, False):
        note = next(
            b.text
            for b in blocks_of(result("ynat", 60.0, 4.0, is_official))
            if isinstance(b, Text) and "AUPRC" in b.text
        )
        assert translate(note).startswith("점수는 0에서 100까지입니다")


def test_korean_pages_have_the_same_numbers() -> None:
    html = render(
        "page.html.j2",
        page(*result_sections(Results([result("ynat", 60.0, 4.0, intervals={"accuracy": [50.0, 70.0]})]))),
    )
    korean = translate_html(html)
    assert '<html lang="ko">' in korean and '<h2 id="scores">점수</h2>' in korean
    assert "50.0~70.0" in korean and "공식 dev 세트로 채점하지 않았습니다: 모든 결과." in korean
    assert re.findall(r"\d+\.\d\d(?=<)", korean) == re.findall(r"\d+\.\d\d(?=<)", html)


@pytest.mark.parametrize(
    ("language", "locale", "spoken"),
    [("auto", "ko_KR.UTF-8", "ko"), ("auto", "C.UTF-8", "en"), ("en", "ko_KR.UTF-8", "en"), ("ko", "", "ko")],
)
def test_language_follows_the_locale_unless_the_recipe_names_it(
    language: Any, locale: str, spoken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LC_ALL", raising=False)
    monkeypatch.delenv("LC_MESSAGES", raising=False)
    monkeypatch.setenv("LANG", locale)
    assert LaunchConfig(language=language).resolve_language() == spoken
