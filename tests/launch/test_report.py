"""The report: honest verdicts, escaped text, Markdown and HTML from the same blocks."""

from __future__ import annotations

import re
from typing import Any

import pytest

from launch.report.blocks import Section, Table, Text
from launch.report.corpus import INVENTED, _before_and_after
from launch.report.figures import draw_counts, draw_loss, draw_scores
from launch.report.run import render
from launch.report.scores import scores_section, verdict_on_scores


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
            draw_loss([1, 2], [9.0, 8.0], [1.0, 2.0], 8.5),
            draw_scores(["ynat"], [60.0], [4.0]),
            draw_counts({"TEL": 3}, "values"),
        ]

    assert figures() == figures()
    assert all(figure.startswith("<svg") for figure in figures())
