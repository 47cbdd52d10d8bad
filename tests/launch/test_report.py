"""The report: honest verdicts, escaped text, Markdown and HTML from the same blocks."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from launch.report.blocks import Picture, Section, Table, Text
from launch.report.corpus import INVENTED, _before_and_after
from launch.report.figures import Curve, draw_counts, draw_loss, draw_scores
from launch.report.gather import read_scores
from launch.report.run import render
from launch.report.scores import scores_section, verdict_on_scores
from launch.report.training import pretraining_section


def result(
    task: str, score: float | None, trivial: float | None, is_official: bool = False, **more: Any
) -> dict[str, Any]:
    return {
        "task": task, "model": "model", "seed": 1, "headline": "accuracy", "n": 10, "n_train": 40, "split": "dev",
        "is_official_dev": is_official, "scores": {"accuracy": score}, "trivial": {"accuracy": trivial},
        "intervals": {"accuracy": None}, "paper_dev": {"klue/roberta-base": {"accuracy": 85.5}}, "protocol": "malmoi",
        **more,
    }  # fmt: skip


def tables_of(*scores: dict[str, Any]) -> list[Table]:
    return [block for block in scores_section(scores).blocks if isinstance(block, Table)]


def texts_of(*scores: dict[str, Any]) -> str:
    return " ".join(block.text for block in scores_section(scores).blocks if isinstance(block, Text))


def test_verdict_names_what_was_learnt_and_what_was_not() -> None:
    learnt, not_learnt = verdict_on_scores([result("klue-nli", 60.0, 33.3), result("ynat", 3.9, 3.9)])
    assert "Beats the trivial baseline on 1 of 2" in learnt
    assert "klue-nli +26.7" in learnt
    assert "ynat (accuracy +0.0)" in not_learnt


def test_undefined_score_counts_as_not_learnt() -> None:
    assert verdict_on_scores([result("klue-sts", None, None)]) == [
        "No better than the trivial baseline by the first metric: klue-sts (accuracy undefined)."
    ]


def test_published_figures_stand_only_beside_the_official_dev_file() -> None:
    official, other = (tables_of(result("klue-nli", 60.0, 33.3, is_official))[0] for is_official in (True, False))
    assert "85.50" in official.rows[0]
    assert "85.50" not in other.rows[0]
    assert not any("Table 36" in head for head in other.heads)


def test_what_results_share_is_said_once_and_what_differs_is_a_column() -> None:
    files = {"dev": {"file": "ynat-v1.1_dev.json", "sha256": "0" * 64, "version": "official v1.1"}}
    one = result("ynat", 60.0, 33.3, data=files, selected=None)
    assert "All results: encoder model, seed 1, protocol malmoi, last weights, data version official v1.1." in texts_of(
        one
    )
    table = tables_of(one, result("klue-nli", 60.0, 33.3))[0]
    assert table.heads[:3] == ["task", "data", "metric"]
    assert [row[1] for row in table.rows] == ["official v1.1", "unknown"]
    assert ["ynat", "dev", "ynat-v1.1_dev.json", "official v1.1", "0" * 12] in tables_of(one)[-1].rows


def test_what_makes_scores_incomparable_stands_above_them() -> None:
    def warned(**more: Any) -> str:
        first = result("ynat", 60.0, 4.0, is_official=True)
        blocks = scores_section([first, result("klue-nli", 60.0, 33.3, **more)]).blocks
        lines = [block.text for block in blocks if isinstance(block, Text) and block.is_warning]
        assert all("klue-nli" in line and "ynat" not in line for line in lines)
        assert all(isinstance(block, Text) for block in blocks[: len(lines)])
        return " ".join(lines)

    assert not warned(is_official=True)
    assert "Not scored on the official dev set" in warned()
    assert "repeat the faults" in warned(is_official=True, protocol="klue-baseline")
    chosen = warned(is_official=True, selected={"by": "accuracy", "score": 60.0, "step": 80, "evaluations": 16})
    assert "chosen by their score on the examples that are scored here" in chosen


SEEDS = [result("ynat", score, 4.0, is_official=True, seed=seed) for seed, score in ((1, 60.0), (2, 62.0), (3, 64.0))]
OTHER = result("ynat", 70.0, 4.0, is_official=True, model="klue/roberta-base")


def test_models_and_seeds_are_compared_task_by_task() -> None:
    first, *others = tables_of(*SEEDS, OTHER, result("klue-nli", 50.0, 33.3))
    assert first.heads == ["task", "metric", "model", "klue/roberta-base", "trivial", "klue/roberta-base, Table 36"]
    assert first.rows == [
        ["ynat", "accuracy", "62.00 ± 2.00", "70.00", "4.00", "85.50"],
        ["klue-nli", "accuracy", "50.00", "–", "33.30", "–"],
    ]
    assert "1 or 3 seeds" in first.title
    every = next(table for table in others if table.title == "Every result")
    assert every.folded and len(every.rows) == 5
    assert not any("average" in row[0] for table in others for row in table.rows)


def test_an_undefined_score_of_one_seed_leaves_no_mean() -> None:
    table = tables_of(*SEEDS[:2], result("ynat", None, 4.0, seed=3))[0]
    assert table.rows[0][2] == "–"


def test_results_on_other_examples_or_protocols_are_not_mixed() -> None:
    split = tables_of(SEEDS[0], result("ynat", 90.0, 4.0, seed=2, split="20% of dev"))[0]
    assert [row[2] for row in split.rows] == ["60.00", "90.00"]
    table = tables_of(SEEDS[0], result("ynat", 90.0, 4.0, protocol="klue-baseline"))[0]
    assert table.heads[2:4] == ["model, malmoi", "model, klue-baseline"]
    assert table.rows[0][2:4] == ["60.00", "90.00"]


def test_verdict_speaks_of_each_model_over_its_seeds() -> None:
    assert verdict_on_scores([*SEEDS, OTHER]) == [
        "model: beats the trivial baseline on 1 of 1 results: ynat +58.0.",
        "klue/roberta-base: beats the trivial baseline on 1 of 1 results: ynat +66.0.",
    ]


def test_many_results_are_a_table_and_no_figure() -> None:
    def figures(models: int) -> int:
        blocks = scores_section([result("ynat", 50.0, 4.0, model=f"m{n}") for n in range(models)]).blocks
        return sum(isinstance(block, Picture) for block in blocks)

    assert (figures(2), figures(11)) == (1, 0)


CLASSES = {"classes": [{"class": "사회", "gold": 1200, "f1": 81.254}, {"class": "경제", "gold": 0, "f1": None}]}
ERRORS = {
    "task": "ynat", "n": 200, "wrong": 30, "sorted_by": "probability", "samples": [{
        "guid": "ynat-v1_dev_00001", "texts": {"title": "<b>새 도서관</b> | *연다*"}, "gold": ["사회"],
        "predicted": [f"자리 {n}" for n in range(15)], "value": 0.987,
    }],
}  # fmt: skip


def test_figures_by_class_are_folded_below_the_scores() -> None:
    table = next(table for table in tables_of(result("ynat", 60.0, 4.0, tables=CLASSES)) if "classes" in table.title)
    assert table.folded and table.title == "ynat: classes"
    assert (table.heads, list(table.numbers)) == (["class", "gold", "f1"], [1, 2])
    assert table.rows == [["사회", "1,200", "81.25"], ["경제", "0", "–"]]


def test_wrong_predictions_are_folded_below_the_scores() -> None:
    found = [result("ynat", 60.0, 4.0, seed=seed, errors=ERRORS) for seed in (1, 2)]
    (table,) = (table for table in tables_of(*found) if table.is_text)
    assert table.title == "ynat, seed 1: 1 of 30 wrong among 200, the most certain first"
    assert table.heads == ["example", "right", "predicted", "probability", "guid"]
    (row,) = table.rows
    assert (row[1], row[3], row[4]) == ("사회", "0.99", "ynat-v1_dev_00001")
    assert row[2].split("\n")[-2:] == ["자리 11", "… and 3 more"]


def test_text_of_examples_cannot_break_either_page() -> None:
    section = scores_section([result("ynat", 60.0, 4.0, model="<m>`[x](y)", errors=ERRORS, tables=CLASSES)])
    html, markdown = render("page.html.j2", page(section)), render("page.md.j2", page(section))
    assert "&lt;b&gt;새 도서관&lt;/b&gt;" in html and "&lt;m&gt;" in html
    assert "&lt;b&gt;새 도서관&lt;/b&gt; \\| \\*연다\\* |" in markdown
    assert "encoder &lt;m&gt;\\`\\[x\\](y)" in markdown
    assert "자리 0<br>자리 1<br>" in markdown


def test_errors_are_read_beside_the_scores(tmp_path: Path) -> None:
    for seed in (1, 2):
        folder = tmp_path / "finetune" / "ynat" / "model" / f"seed-{seed}"
        folder.mkdir(parents=True)
        (folder / "scores.json").write_text(json.dumps(result("ynat", 60.0, 4.0, seed=seed)), "utf-8")
    (folder / "errors.json").write_text(json.dumps(ERRORS), "utf-8")
    assert [found["errors"] for found in read_scores(tmp_path)] == [None, ERRORS]


def page(*sections: Section) -> dict[str, Any]:
    return {"title": "t", "about": "", "verdict": [], "stages": [], "sections": sections}


def test_text_of_the_corpus_cannot_break_either_page() -> None:
    section = Section("<s>", [Text("<script>alert(1)</script>"), Table(["a"], [["x | y\nz"]])])
    html, markdown = render("page.html.j2", page(section)), render("page.md.j2", page(section))
    assert "<script>" not in html
    assert "x \\| y<br>z" in markdown
    assert "<script>" not in markdown


def test_html_page_needs_nothing_from_outside() -> None:
    html = render("page.html.j2", page(Section("s", [Text("말모이")])))
    assert not re.search(r"""(src|href)\s*=|url\(|@import""", html)
    assert '"Noto Sans KR"' in html


@pytest.mark.parametrize("sentence", INVENTED)
def test_every_invented_sentence_shows_one_type_before_and_after(sentence: str) -> None:
    row = _before_and_after(sentence)
    assert row.name != "none"
    assert [part.is_marked for part in row.before] == [part.is_marked for part in row.after]
    marked = {part.text for part in row.before if part.is_marked}
    assert not any(text in "".join(part.text for part in row.after) for text in marked)


def test_invented_sentences_show_all_sixteen_types() -> None:
    from corpus.pii.types import PII_TYPES

    assert {_before_and_after(sentence).name for sentence in INVENTED} == set(PII_TYPES)


def test_equal_numbers_give_equal_figures() -> None:
    def figures() -> list[str]:
        return [
            draw_loss(Curve([1, 2], [9.0, 8.0], [1.0, 2.0]), Curve([2], [8.5], [1.5])),
            draw_scores(["ynat"], [60.0], [4.0]),
            draw_counts({"TEL": 3}, "values"),
        ]

    assert figures() == figures()
    assert all(figure.startswith("<svg") for figure in figures())


def scores_on(accuracy: float, loss: float, **more: Any) -> dict[str, Any]:
    return {
        "rows": 20, "predictions": 1540, "mlm_loss": loss, "masked_accuracy": accuracy, "pseudo_perplexity": 12.5,
        **more,
    }  # fmt: skip


def write_training(run: Path, held_out: dict[str, Any], **of_lines: float) -> None:
    timing = {"seconds": 10.0, "memory_gib": 1.5, "tokens": 0, "lr": 1e-4}
    lines: list[dict[str, Any]] = [
        {"step": 2, "loss": 9.0, "masked_accuracy": 0.01, "tokens_per_second": 100} | timing | of_lines,
        {"step": 4, "loss": 8.0, "masked_accuracy": 0.05, "tokens_per_second": 2000} | timing | of_lines,
        {"step": 4, "held_out": held_out},
        {"step": 6, "loss": 7.0, "masked_accuracy": 0.10, "tokens_per_second": 4000} | timing | of_lines,
    ]
    counts = {"architecture": "roberta", "parameters": 68_000, "steps": 6, "tokens": 9000, "epochs": 1.5}
    (run / "pretrain").mkdir()
    (run / "pretrain" / "manifest.json").write_text(json.dumps({"counts": counts | {"held_out": held_out}}), "utf-8")
    (run / "pretrain" / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")


def test_pretraining_stands_beside_its_baselines_by_source(tmp_path: Path) -> None:
    sources = {"수필": scores_on(0.5, 2.0), "일기": scores_on(0.25, 3.0)}
    baselines = {"unigram_accuracy": 0.031, "bigram_accuracy": 0.112}
    write_training(tmp_path, scores_on(0.4, 2.5, sources=sources, baselines=baselines), mfu=0.42)
    first, _, table, _ = pretraining_section(tmp_path).blocks
    assert isinstance(first, Text) and isinstance(table, Table)
    # the first interval, which holds the start-up, is not part of the speed
    assert "30 s of training at 3,000 tokens a second, 42.0 % of what the device could do at best (MFU)" in first.text
    assert [(row[0], row[4]) for row in table.rows] == [
        ("all", "40.00"), ("수필", "50.00"), ("일기", "25.00"),
        ("all, unigram baseline", "3.10"), ("all, bigram baseline", "11.20"),
    ]  # fmt: skip
    assert table.rows[1] == ["수필", "20", "1,540", "2.000", "50.00", "12.50"]


def test_held_out_measurements_are_points_over_the_steps(tmp_path: Path) -> None:
    write_training(tmp_path, scores_on(0.4, 2.5, sources={}, baselines={}))
    blocks = pretraining_section(tmp_path).blocks
    picture = next(block for block in blocks if isinstance(block, Picture))
    assert "held out" in picture.svg and "MFU" not in str(blocks[0])
    assert "held out" not in draw_loss(Curve([2, 4], [9.0, 8.0], [1.0, 5.0]), Curve([], [], []))


def test_sentence_pairs_get_a_column(tmp_path: Path) -> None:
    source = scores_on(0.5, 2.0, nsp_loss=0.6, nsp_accuracy=0.75)
    held_out = scores_on(
        0.4, 2.5, nsp_loss=0.7, nsp_accuracy=0.7, sources={"수필": source}, baselines={"bigram_accuracy": 0.1}
    )
    write_training(tmp_path, held_out, mlm_loss=6.5, nsp_accuracy=0.6)
    table = next(block for block in pretraining_section(tmp_path).blocks if isinstance(block, Table))
    assert [row[6] for row in table.rows] == ["70.00", "75.00", "–"]
    assert all(len(row) == len(table.heads) for row in table.rows)
