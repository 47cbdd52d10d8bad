"""Tokenizers side by side: tables for the terminal and for Markdown, all figures as JSON, one picture.

Tables and Markdown are made of the same rows, so they cannot disagree. The first two rows of the first table are the
paper's own (Table 35, over Korean Wikipedia): other text gives other figures, their order is what to compare.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launch.console import Table, figures, markdown_table, print_table
from launch.errors import LaunchError
from launch.report.gather import count, number
from launch.report.stages import PAPER_TABLE_35

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console

    from tokenizer.measuring.boundaries import BoundaryScores
    from tokenizer.measuring.compare import Comparison

UNDATED = {".png": {"Software": None}, ".svg": {"Date": None, "Creator": None},
           ".pdf": {"CreationDate": None, "Creator": None, "Producer": None}}  # fmt: skip
INK, ACCENT, PALE = "#1f2a37", "#0b6e99", "#c9d3dc"
STYLE: Any = {
    "svg.hashsalt": "malmoi", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9,
    "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": PALE, "axes.labelcolor": INK,
    "xtick.color": INK, "ytick.color": INK, "axes.grid": True, "axes.axisbelow": True, "grid.color": "#eef2f5",
}  # fmt: skip
LABEL_SHARE = 0.05  # of an axis: points closer than this in both directions share a label
NOTES = (
    "A word is an eojeol, cut at white space; a piece is a token, [CLS] and [SEP] left out.",
    "Pieces per word: pieces over words (fertility). Words in several: share of words of two or more pieces.",
    "[UNK] per piece: share of pieces that are [UNK]; of a BERT vocabulary one stands for a whole BERT word.",
    "Usable: neither special nor spare slots; of these, how many the text never uses or uses under five times.",
    "Unknown words: BERT words with an [UNK], under the kind of the first character to blame.",
    "Boundaries: places inside words where a morpheme begins. F1 within words leaves out those that punctuation and "
    "Han characters give. All kept: share of words with a boundary in which every one is a boundary of pieces. "
    "Crossing pieces: share of pieces with a boundary inside.",
)


def compare_tokenizers(
    tokenizers: Sequence[Path], texts: Any, golds: Sequence[Path] = (), outputs: Sequence[Path] = ()
) -> list[Comparison]:
    """Measure folders or vocab.txt files on texts, which are read once, and write the outputs by their endings.

    Raises:
        LaunchError: two KLUE-DP files, or an ending that nothing is written in; before anything is measured.
    """
    from tokenizer.measuring.compare import compare

    if len(golds) > 1:
        raise LaunchError(f"--gold is given {len(golds)} times; give one KLUE-DP file, or join them into one")
    for path in outputs:
        if path.suffix not in (".md", ".json", *UNDATED):
            raise LaunchError(f"{path}: ends in none of .md, .json, {', '.join(UNDATED)}; rename the output")
        if not path.parent.is_dir():
            raise LaunchError(f"{path}: there is no folder {path.parent} to write it into; make it first")
    found = compare(tokenizers, texts, golds[0] if golds else None)
    for path in outputs:
        if path.suffix in UNDATED:
            write_plot(found, path)
        else:
            path.write_text(as_markdown(found) if path.suffix == ".md" else as_json(found), "utf-8")
    return found


def comparison_tables(found: Sequence[Comparison]) -> list[Table]:
    """Tables of figures, tokenizers in the order given; kinds of unknown words are rows, as there may be ten."""
    fits = [(c.name, c.fit) for c in found]
    largest = max((fit for _, fit in fits), key=lambda fit: fit.eojeols)
    paper = [[name, *(number(value, 3) for value in values), "–"] for name, values in PAPER_TABLE_35.items()]
    fitted = []
    for name, fit in fits:
        words = number(fit.fertility, 3), number(fit.continued_words, 3)
        fitted.append([name, *words, number(fit.unknown_ratio, 4), number(fit.tokens_per_character, 3)])
    entries = [[name, *map(count, (fit.vocab_size, fit.pieces, fit.never_used, fit.rarely_used))] for name, fit in fits]
    totals = ["all", *(count(sum(fit.unknown_words.values())) for _, fit in fits)]
    unknown = [
        [kind, *(count(fit.unknown_words.get(kind, 0)) for _, fit in fits)]
        for kind in dict.fromkeys(kind for _, fit in fits for kind in fit.unknown_words)
    ]
    tables = [
        figures(
            f"Fit to the text ({count(largest.eojeols)} words, {count(largest.characters)} characters)",
            ("tokenizer", "pieces per word", "words in several", "[UNK] per piece", "pieces per character"),
            paper + fitted,
        ),
        figures("Entries and their use", ("tokenizer", "entries", "usable", "never used", "under five times"), entries),
        figures("What makes words [UNK]", ("unknown words by", *(name for name, _ in fits)), [totals, *unknown]),
        _boundaries("Boundaries of morphemes in the text, by mecab-ko", [(c.name, c.silver) for c in found]),
    ]
    if gold := [(c.name, c.gold) for c in found if c.gold]:
        tables.append(_boundaries("Boundaries of morphemes in KLUE-DP, by people", gold))
    return tables


def _boundaries(title: str, scores: Sequence[tuple[str, BoundaryScores]]) -> Table:
    rows = []
    for name, s in scores:
        shares = (s.precision, s.recall, s.f1, s.f1_within_words, s.keeps_all, s.crossing)
        rows.append([name, *(number(value, 3) for value in shares)])
    first = scores[0][1]
    title += f" ({count(first.boundaries)} in {count(first.eojeols)} words; {count(first.skipped)} words left out)"
    heads = ("tokenizer", "precision", "recall", "F1", "F1 within words", "all kept", "crossing pieces")
    return figures(title, heads, rows)


def print_comparison(found: Sequence[Comparison], console: Console) -> None:
    """All tables and what their columns mean."""
    for table in comparison_tables(found):
        print_table(table, console)
    console.print("\n".join(NOTES), style="dim", markup=False)


def as_markdown(found: Sequence[Comparison]) -> str:
    """The same tables as a Markdown page."""
    parts = [markdown_table(table) for table in comparison_tables(found)]
    return "\n\n".join([*parts, "\n".join(f"- {note}" for note in NOTES)]) + "\n"


def as_json(found: Sequence[Comparison]) -> str:
    """Every figure that was measured, in a list, as JSON text."""
    return json.dumps([asdict(c) for c in found], ensure_ascii=False, indent=2) + "\n"


def write_plot(found: Sequence[Comparison], path: Path) -> None:
    """The picture as the ending says; equal figures give equal bytes."""
    import matplotlib

    matplotlib.use("svg")
    with matplotlib.rc_context(STYLE):
        draw_comparison(found).savefig(path, dpi=200, metadata=UNDATED[path.suffix])


def draw_comparison(found: Sequence[Comparison]) -> Figure:
    """Left: length of the encoded text against agreement with morphemes; right: share of pieces that cross a boundary.

    Points bear the number of their bar, so that names never overlap; a name beyond ASCII is its number alone (the font
    has no Hangul). Boundaries are gold where gold was given.
    """
    from matplotlib.figure import Figure

    scores = [c.gold or c.silver for c in found]
    reference = "KLUE-DP" if all(c.gold for c in found) else "mecab-ko"
    figure = Figure(figsize=(8.4, max(3.0, 0.34 * len(found) + 1.4)), layout="constrained")
    left, right = figure.subplots(1, 2)
    points = [(c.fit.fertility, score.f1 or 0.0) for c, score in zip(found, scores, strict=True)]
    left.scatter(*zip(*points, strict=True), color=ACCENT, zorder=3)
    for place, label in _label_points(points).items():
        left.annotate(label, place, xytext=(6, 4), textcoords="offset points", fontsize=9, color=INK)
    left.set(xlabel="pieces per word (fewer is shorter)", ylabel=f"boundary F1 ({reference})")
    left.margins(0.15)
    crossing = [100 * (score.crossing or 0.0) for score in scores]
    rows = list(range(len(found)))
    right.barh(rows, crossing, 0.6, color=ACCENT)
    names = [c.name if c.name.isascii() else "" for c in found]
    right.set_yticks(rows, [f"{row} {name}" for row, name in enumerate(names, start=1)])
    for row, value in enumerate(crossing):
        right.text(value, row, f" {value:.1f}", va="center", fontsize=8, color=INK)
    right.set(xlabel=f"pieces across a boundary, % ({reference})", xlim=(0, max([1.0, *crossing]) * 1.15))
    right.invert_yaxis()
    right.grid(axis="y", visible=False)
    return figure


def _label_points(points: Sequence[tuple[float, float]]) -> dict[tuple[float, float], str]:
    """The numbers of points; those so close that labels would overlap have one, at the rightmost of them."""
    widths = [max(max(values) - min(values), 1e-9) for values in zip(*points, strict=True)]
    groups: dict[tuple[float, float], list[int]] = {}
    for row, point in enumerate(points, start=1):
        near = (
            place
            for place in groups
            if all(abs(a - b) < LABEL_SHARE * width for a, b, width in zip(point, place, widths, strict=True))
        )
        groups.setdefault(next(near, point), []).append(row)
    return {max(points[row - 1] for row in rows): ", ".join(map(str, rows)) for rows in groups.values()}
