"""Tokenizers side by side: the same figures in every form, refusals before anything is measured."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest
from rich.console import Console

from launch.errors import LaunchError
from launch.tools.tokenizer_tables import (
    as_json,
    as_markdown,
    compare_tokenizers,
    comparison_tables,
    draw_comparison,
    print_comparison,
    write_plot,
)
from tokenizer.measuring.boundaries import BoundaryScores
from tokenizer.measuring.compare import Comparison
from tokenizer.measuring.statistics import TokenizerStatistics


def comparison(name: str, fertility: float, f1: float | None, *, has_gold: bool = True, **unknown: int) -> Comparison:
    fit = TokenizerStatistics(
        vocab_size=32_000, eojeols=1_000, characters=3_500, tokens=2_000, unknown_tokens=9, fertility=fertility,
        continued_words=0.75, unknown_ratio=0.0045, tokens_per_character=0.571, unknown_eojeols=(("뷁은", 9),),
        unknown_words=unknown, pieces=31_495, never_used=120, rarely_used=400,
    )  # fmt: skip
    scores = BoundaryScores(
        eojeols=900, skipped=3, boundaries=1_100, precision=0.8, recall=0.9, f1=f1, f1_within_words=0.7,
        keeps_all=0.65, crossing=0.125,
    )  # fmt: skip
    return Comparison(name, fit, scores, scores if has_gold else None)


FOUND = [comparison("klue", 2.347, 0.863, syllable=5, Han=4), comparison("a|b", 2.063, None, emoji=1)]


def test_every_figure_stands_in_markdown_once_a_tokenizer() -> None:
    page = as_markdown(FOUND)

    assert "| klue | 2.347 | 0.750 | 0.0045 | 0.571 |" in page
    assert "| klue | 32,000 | 31,495 | 120 | 400 |" in page
    assert "| klue | 0.800 | 0.900 | 0.863 | 0.700 | 0.650 | 0.125 |" in page
    assert "| a\\|b | 0.800 | 0.900 | – | 0.700 | 0.650 | 0.125 |" in page
    assert "| paper, morphemes + BPE | 2.468 | 0.765 | 0.009 | – |" in page


def test_unknown_words_have_a_row_for_each_kind_that_occurs() -> None:
    table = comparison_tables(FOUND)[2]

    assert table.rows == [["all", "9", "1"], ["syllable", "5", "0"], ["Han", "4", "0"], ["emoji", "0", "1"]]


def test_gold_has_a_table_where_gold_was_given() -> None:
    titles = [table.title for table in comparison_tables(FOUND)]
    assert titles[3:] == [
        "Boundaries of morphemes in the text, by mecab-ko (1,100 in 900 words; 3 words left out)",
        "Boundaries of morphemes in KLUE-DP, by people (1,100 in 900 words; 3 words left out)",
    ]
    assert len(comparison_tables([comparison("klue", 2.3, 0.8, has_gold=False)])) == 4


def test_terminal_shows_the_cells_of_markdown_without_reading_them_as_mark_up() -> None:
    console = Console(file=io.StringIO(), width=160)

    print_comparison(FOUND, console)

    shown = console.file.getvalue()  # type: ignore[attr-defined]
    cells = [cell for table in comparison_tables(FOUND) for row in (table.heads, *table.rows) for cell in row]
    assert [cell for cell in cells if cell not in shown] == []
    assert "[UNK] per piece" in shown


def test_json_holds_all_figures() -> None:
    assert json.loads(as_json(FOUND))[0] == json.loads(json.dumps(asdict(FOUND[0])))


def test_pictures_of_equal_figures_are_equal_bytes(tmp_path: Path) -> None:
    for ending, magic in ((".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")):
        paths = [tmp_path / f"{number}{ending}" for number in range(2)]
        for path in paths:
            write_plot(FOUND, path)
        assert paths[0].read_bytes() == paths[1].read_bytes()
        assert paths[0].read_bytes().startswith(magic)


@pytest.mark.filterwarnings("error:Glyph")  # the font has no Hangul
def test_picture_numbers_its_points_and_joins_those_that_coincide(tmp_path: Path) -> None:
    found = [
        comparison("klue", 2.347, 0.863),
        comparison("말모이", 2.421, 0.891),
        comparison("other", 2.3471, 0.8631),
        comparison("empty", 2.0, None, has_gold=False),
    ]

    left, right = draw_comparison(found).axes
    write_plot(found, tmp_path / "p.png")

    assert [text.get_text() for text in left.texts] == ["1, 3", "2", "4"]
    assert [text.get_text().strip() for text in right.get_yticklabels()] == ["1 klue", "2", "3 other", "4 empty"]
    assert "mecab-ko" in left.get_ylabel()  # one has no gold, so none is drawn by it


def refuse_to_read() -> Iterator[str]:
    pytest.fail("text was read before the arguments were checked")
    yield ""


@pytest.mark.parametrize(
    ("golds", "outputs", "message"),
    [
        ((Path("a.tsv"), Path("b.tsv")), (), "--gold is given 2 times; give one"),
        ((), (Path("table.xlsx"),), r"table\.xlsx: ends in none of \.md, \.json, \.png"),
        ((), (Path("no/such/table.md"),), "there is no folder no/such"),
    ],
)
def test_bad_arguments_are_refused_at_once(golds: tuple[Path], outputs: tuple[Path], message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        compare_tokenizers([], refuse_to_read(), golds, outputs)


def test_one_call_measures_and_writes_every_form(tmp_path: Path) -> None:
    vocabulary = tmp_path / "small.txt"
    vocabulary.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n나\n##는\n책\n##을\n", "utf-8")
    outputs = [tmp_path / f"out{ending}" for ending in (".md", ".json", ".svg")]

    found = compare_tokenizers([vocabulary], ["나는 책을"], (), outputs)

    assert outputs[0].read_text("utf-8") == as_markdown(found)
    assert outputs[1].read_text("utf-8") == as_json(found)
    assert "1 small" in outputs[2].read_text("utf-8")
    assert (found[0].fit.fertility, found[0].silver.f1) == (2.0, 1.0)
