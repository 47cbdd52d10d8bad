"""Tables of a comparison of tokenizers: the same numbers in every format; bad arguments are rejected early."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from corpus.documents.errors import BadInput
from launch.console import PlainConsole, markdown_table
from launch.tools.tokenizers import comparison_tables, print_comparison
from tokenizer.measuring.boundaries import BoundaryScores
from tokenizer.measuring.compare import Comparison, OnGold, OnText, compare
from tokenizer.measuring.statistics import TokenizerStatistics


def comparison(
    name: str, fertility: float, f1: float | None, *, golds: int = 1, texts: int = 0, hangul: int = 4, **unknown: int
) -> Comparison:
    fit = TokenizerStatistics(
        vocab_size=32_000, eojeols=1_000, characters=3_500, tokens=2_000, unknown_tokens=9, unknown_hangul=hangul,
        fertility=fertility, continued_words=0.75, unknown_ratio=0.0045, unknown_hangul_ratio=hangul / 2_000_000,
        tokens_per_character=0.571, renyi_efficiency=0.4567, unknown_eojeols=(("뷁은", 9),), unknown_words=unknown,
        pieces=31_495, never_used=120, rarely_used=400,
    )  # fmt: skip
    scores = BoundaryScores(
        eojeols=900, skipped=100, boundaries=1_100, precision=0.8, recall=0.9, f1=f1, f1_within_words=0.7,
        keeps_all=0.65, crossing=0.125,
        intervals={"f1": (0.859, 0.8676), "keeps_all": (0.64, 0.66), "crossing": (0.1249, 0.1251)} if f1 else {},
    )  # fmt: skip
    limits = (fertility - 0.01, fertility + 0.01)
    files = [("klue-dp-v1.1_dev", "KLUE-DP"), ("한국어", "CoNLL-U")][:golds]
    return Comparison(
        name,
        OnText("all 2 texts" if texts else "news", fit, limits, scores),
        tuple(OnText(f"text {number}", fit, None, scores) for number in range(texts)),
        tuple(OnGold(*file, scores) for file in files),
    )


FOUND = [comparison("klue", 2.347, 0.863, syllable=5, Han=4), comparison("a|b", 2.063, None, hangul=0, emoji=1)]


def test_markdown_has_every_number_once_per_tokenizer() -> None:
    page = "\n".join(map(markdown_table, comparison_tables(FOUND)))

    assert "| klue | 2.347 ±.010 | 0.750 | 0.0045 | &lt;0.00001 | 0.571 | 0.457 |" in page
    assert "| a\\|b | 2.063 ±.010 | 0.750 | 0.0045 | 0 | 0.571 | 0.457 |" in page
    assert "| klue | 32,000 | 31,495 | 120 | 400 |" in page
    assert "| klue | 0.800 | 0.900 | 0.863 ±.005 | 0.700 | 0.650 ±.010 | 0.125 ±.001 |" in page
    assert "| a\\|b | 0.800 | 0.900 | – | 0.700 | 0.650 | 0.125 |" in page
    assert "| paper, morphemes + BPE | 2.468 | 0.765 | 0.009 |  |  |  |" in page
    assert "| tokenizer | pieces per word | words in several | \\[UNK\\] per piece | over Hangul |" in page


def test_each_gold_file_has_a_table() -> None:
    titles = [table.title for table in comparison_tables([comparison("klue", 2.3, 0.8, golds=2)])]
    assert titles[2:] == [
        "Boundaries of morphemes in news, by mecab-ko (1,100 in 900 words; 10.00 % of the words left out)",
        "Boundaries of morphemes in klue-dp-v1.1_dev (KLUE-DP), annotated (1,100 in 900 words; 10.00 % of the words "
        "left out)",
        "Boundaries of morphemes in 한국어 (CoNLL-U), annotated (1,100 in 900 words; 10.00 % of the words left out)",
    ]
    assert len(comparison_tables([comparison("klue", 2.3, 0.8, golds=0)])) == 3


def test_several_texts_have_their_own_rows() -> None:
    both = [comparison(name, 2.3, 0.8, texts=2) for name in ("klue", "other")]
    figures = ["2.300", "0.0045", "<0.00001", "0.571", "0.457", "0.800 ±.005"]

    assert [row[0] for row in comparison_tables(both)[2].rows] == [
        "text 0 (1,000)", "  klue", "  other", "text 1 (1,000)", "  klue", "  other",
    ]  # fmt: skip
    assert comparison_tables(both)[2].rows[1][1:] == figures
    assert comparison_tables(both[:1])[2].rows == [[f"text {number} (1,000)", *figures] for number in range(2)]
    assert comparison_tables(both)[0].title == "Fit to all 2 texts (1,000 words, 3,500 characters)"


def test_tables_of_ten_tokenizers_fit_a_terminal_of_80_columns() -> None:
    names = [f"klue-roberta-{number}" for number in range(10)]
    found = [comparison(name, 12.345, 0.863, texts=3, golds=2, syllable=123_456) for name in names]
    console = PlainConsole(file=io.StringIO(), width=80)

    print_comparison(found, console)

    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert max(map(len, lines)) <= 80
    for name in names:  # in every table, by text three times
        assert sum(name in line for line in lines) == 2 + 3 + 3
    assert sum("0.863 ±.005" in line for line in lines) == 10 * (3 + 3)
    assert sum("12.345" in line for line in lines) == 10 * (1 + 3)


def test_the_terminal_shows_the_cells_of_markdown_as_plain_text() -> None:
    console = Console(file=io.StringIO(), width=160)

    print_comparison(FOUND, console)

    shown = console.file.getvalue()  # type: ignore[attr-defined]
    cells = [cell for table in comparison_tables(FOUND) for row in (table.heads, *table.rows) for cell in row]
    assert [part for cell in cells for part in cell.split("\n") if part not in shown] == []
    assert "[UNK]" in shown


def refuse_to_read() -> Iterator[str]:
    pytest.fail("text was read before the arguments were checked")
    yield ""


def test_a_gold_file_given_twice_is_refused_before_the_text_is_read(tmp_path: Path) -> None:
    (tmp_path / "dp.tsv").write_text("1\t나는\t나 는\tNP+JX\t0\tNP_SBJ\n", "utf-8")
    with pytest.raises(BadInput, match=r"dp\.tsv: this gold file is given twice"):
        compare([], {"text": refuse_to_read()}, [tmp_path / "dp.tsv", tmp_path / "dp.tsv"])


def test_one_call_measures_all_numbers(tmp_path: Path) -> None:
    vocabulary = tmp_path / "small.txt"
    vocabulary.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n나\n##는\n책\n##을\n", "utf-8")
    [found] = compare([vocabulary], {"text": ["나는 책을"]})
    assert (found.whole.fit.fertility, found.whole.silver.f1) == (2.0, 1.0)
