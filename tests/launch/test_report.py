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
from launch.report.run import render
from launch.report.scores import scores_section, verdict_on_scores
from launch.report.training import pretraining_section


def result(task: str, score: float | None, trivial: float | None, is_official: bool = False) -> dict[str, Any]:
    return {
        "task": task, "model": "model", "seed": 1, "headline": "accuracy", "n": 10, "n_train": 40, "split": "dev",
        "is_official_dev": is_official, "scores": {"accuracy": score}, "trivial": {"accuracy": trivial},
        "intervals": {"accuracy": None}, "paper_dev": {"klue/roberta-base": {"accuracy": 85.5}},
    }  # fmt: skip


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
    def table(is_official: bool) -> Table:
        blocks = scores_section([result("klue-nli", 60.0, 33.3, is_official)]).blocks
        return next(block for block in blocks if isinstance(block, Table))

    assert "85.50" in table(True).rows[0]
    assert "85.50" not in table(False).rows[0]
    assert not any("Table 36" in head for head in table(False).heads)


def page(*sections: Section) -> dict[str, Any]:
    return {"title": "t", "about": "", "verdict": [], "stages": [], "sections": sections}


def test_text_of_the_corpus_cannot_break_either_page() -> None:
    section = Section("<s>", [Text("<script>alert(1)</script>"), Table(["a"], [["x | y\nz"]])])
    html, markdown = render("page.html.j2", page(section)), render("page.md.j2", page(section))
    assert "<script>" not in html
    assert "x \\| y z" in markdown


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
