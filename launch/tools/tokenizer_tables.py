"""Tokenizers side by side: tables for the terminal and for Markdown, all figures as JSON, one picture.

Tables and Markdown are made of the same rows, so they cannot disagree. The first two rows of the first table are the
paper's own (Table 35, over Korean Wikipedia): other text gives other figures, their order is what to compare.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launch.console import Table, figures, markdown_table, print_table
from launch.errors import LaunchError
from launch.numbers import count, number, share
from launch.report.stages import PAPER_TABLE_35

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.console import Console

    from tokenizer.measuring.boundaries import BoundaryScores
    from tokenizer.measuring.compare import Comparison, OnText
    from tokenizer.measuring.samples import Interval

UNDATED = {".png": {"Software": None}, ".svg": {"Date": None, "Creator": None},
           ".pdf": {"CreationDate": None, "Creator": None, "Producer": None}}  # fmt: skip
INK, ACCENT, PALE = "#1f2a37", "#0b6e99", "#c9d3dc"
STYLE: Any = {
    "svg.hashsalt": "malmoi", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9,
    "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": PALE, "axes.labelcolor": INK,
    "xtick.color": INK, "ytick.color": INK, "axes.grid": True, "axes.axisbelow": True, "grid.color": "#eef2f5",
}  # fmt: skip
FIT_HEADS = (
    "pieces\nper word", "words in\nseveral", "[UNK]\nper\npiece", "over\nHangul", "pieces\nper\ncharacter", "Rényi",
)  # fmt: skip
LABEL_SHARE = 0.05  # of an axis: points closer than this in both directions share a label
NOTES = (
    "A word is an eojeol, cut at white space; a piece is a token, [CLS] and [SEP] left out.",
    "Pieces per word: pieces over words (fertility). Words in several: share of words of two or more pieces.",
    "[UNK] per piece: share of pieces that are [UNK]; of a BERT vocabulary one stands for a whole BERT word. Over "
    "Hangul: of these, those in place of text with a Hangul syllable or jamo in it.",
    "Rényi: entropy of order 2.5 of the pieces that occur over its largest value (Zouhar et al. 2023).",
    "Usable: neither special nor spare slots; of these, how many the text never uses or uses under five times.",
    "Unknown words: BERT words with an [UNK], under the kind of the first character to blame.",
    "Boundaries: places inside words where a morpheme begins. F1 within words leaves out those that punctuation and "
    "Han characters give. All kept: share of words with a boundary in which every one is a boundary of pieces. "
    "Crossing pieces: share of pieces with a boundary inside. Words left out: their morphemes do not join to them.",
    "±: half of a 95 % interval, by 1,000 draws of as many sentences of gold or lines of text, the same for all "
    "tokenizers; it says nothing about other kinds of text. The JSON has both ends.",
)


def compare_tokenizers(
    tokenizers: Sequence[Path],
    texts: Mapping[str, Iterable[str]],
    golds: Sequence[Path] = (),
    outputs: Sequence[Path] = (),
) -> list[Comparison]:
    """Measure folders or vocab.txt files on named texts, which are read once, and write the outputs by their endings.

    Raises:
        LaunchError: an ending that nothing is written in, or no folder for an output; before anything is measured.
    """
    from tokenizer.measuring.compare import compare

    for path in outputs:
        if path.suffix not in (".md", ".json", *UNDATED):
            raise LaunchError(f"{path}: ends in none of .md, .json, {', '.join(UNDATED)}; rename the output")
        if not path.parent.is_dir():
            raise LaunchError(f"{path}: there is no folder {path.parent} to write it into; make it first")
    found = compare(tokenizers, texts, golds)
    for path in outputs:
        if path.suffix in UNDATED:
            write_plot(found, path)
        else:
            path.write_text(as_markdown(found) if path.suffix == ".md" else as_json(found), "utf-8")
    return found


def comparison_tables(found: Sequence[Comparison]) -> list[Table]:
    """Tables of figures that fit 80 columns for any number of tokenizers, which are rows, in the order given."""
    largest = max((c.whole for c in found), key=lambda on: on.fit.eojeols)
    paper = [[name, *(number(v, 3) for v in values), "", "", ""] for name, values in PAPER_TABLE_35.items()]
    tables = [
        figures(
            f"Fit to {_sized(largest)}",
            ("tokenizer", *FIT_HEADS),
            paper + [_fit_row(c.name, c.whole) for c in found],
        ),
        figures(
            "Entries and their use",
            ("tokenizer", "entries", "usable", "never used", "under five times"),
            [[c.name, *map(count, (f.vocab_size, f.pieces, f.never_used, f.rarely_used))]
             for c in found for f in [c.whole.fit]],
        ),
        Table(
            ("tokenizer", "words", "by the kind of character to blame"),
            [[c.name, *_kinds(c.whole.fit.unknown_words)] for c in found],
            numbers=[1],
            title="What makes words [UNK]",
        ),
    ]  # fmt: skip
    if found[0].texts:
        tables.append(_by_text(found))
    silver = [(c.name, c.whole.silver) for c in found]
    tables.append(_boundaries(f"Boundaries of morphemes in {largest.text}, by mecab-ko", silver))
    for place, gold in enumerate(found[0].golds):
        scores = [(c.name, c.golds[place].scores) for c in found]
        tables.append(_boundaries(f"Boundaries of morphemes in {gold.file} ({gold.convention}), by people", scores))
    return tables


def _sized(on: OnText) -> str:
    return f"{on.text} ({count(on.fit.eojeols)} words, {count(on.fit.characters)} characters)"


def _fit_row(name: str, on: OnText) -> list[str]:
    fit = on.fit
    return [
        name,
        _with_interval(fit.fertility, on.fertility_interval),
        number(fit.continued_words, 3),
        _rare(fit.unknown_ratio, 4),
        _rare(fit.unknown_hangul_ratio, 5),
        number(fit.tokens_per_character, 3),
        number(fit.renyi_efficiency, 3),
    ]


def _rare(value: float, digits: int) -> str:
    """A share of which 0 says that there is none."""
    smallest = 10**-digits
    return f"<{smallest:.{digits}f}" if 0 < value < smallest else number(value, digits if value else 0)


def _kinds(kinds: Mapping[str, int]) -> tuple[str, str]:
    return count(sum(kinds.values())), ", ".join(f"{kind} {count(words)}" for kind, words in kinds.items())


def _by_text(found: Sequence[Comparison]) -> Table:
    """Of each text its name, and below it a row for each tokenizer; of one tokenizer a row for each text."""
    rows = []
    for place in range(len(found[0].texts)):
        largest = max((c.texts[place] for c in found), key=lambda on: on.fit.eojeols)
        head = f"{largest.text} ({count(largest.fit.eojeols)})"
        measured = []
        for c in found:
            on = c.texts[place]
            f1 = _with_interval(on.silver.f1, on.silver.intervals.get("f1"))
            name, fertility, _, *rest = _fit_row(f"  {c.name}" if len(found) > 1 else head, on)
            measured.append([name, fertility, *rest, f1])
        rows += [[head, *[""] * 6], *measured] if len(found) > 1 else measured
    heads = ("text (words)", FIT_HEADS[0], *FIT_HEADS[2:], "F1 by\nmecab-ko")
    return figures("By text", heads, rows)


def _boundaries(title: str, scores: Sequence[tuple[str, BoundaryScores]]) -> Table:
    rows = []
    for name, s in scores:
        f1, kept, crossing = (
            _with_interval(getattr(s, figure), s.intervals.get(figure)) for figure in ("f1", "keeps_all", "crossing")
        )
        rows.append(
            [name, number(s.precision, 3), number(s.recall, 3), f1, number(s.f1_within_words, 3), kept, crossing]
        )
    first = scores[0][1]
    left_out = share(first.skipped, first.eojeols + first.skipped)
    title += f" ({count(first.boundaries)} in {count(first.eojeols)} words; {left_out} of the words left out)"
    heads = ("tokenizer", "precision", "recall", "F1", "F1\nwithin\nwords", "all kept", "crossing\npieces")
    return figures(title, heads, rows)


def _with_interval(value: float | None, limits: Interval | None) -> str:
    """The figure and half of its interval, rounded up: 0.863 ±.005."""
    if limits is None:
        return number(value, 3)
    half = math.ceil(round((limits[1] - limits[0]) * 500, 6)) / 1000
    return f"{number(value, 3)} ±{f'{half:.3f}'.removeprefix('0')}"


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

    A row for each gold file, by mecab-ko on the text where none was given; bars are 95 % intervals. Points bear the
    number of their bar, so that names never overlap; a name beyond ASCII is left out (the font has no Hangul).
    """
    from matplotlib.figure import Figure

    references = [
        (
            f"Boundaries by people in {_plain(gold.file, 'the gold file')} ({gold.convention}",
            [c.golds[place].scores for c in found],
        )
        for place, gold in enumerate(found[0].golds)
    ] or [
        (
            f"Boundaries by mecab-ko in {_plain(found[0].whole.text, 'the text')} (silver",
            [c.whole.silver for c in found],
        )
    ]
    height = max(3.0, 0.34 * len(found) + 1.4)
    figure = Figure(figsize=(8.4, height * len(references)), layout="constrained")
    panels = figure.subplots(len(references), 2, squeeze=False)
    for (left, right), (reference, scores) in zip(panels, references, strict=True):
        left.set_title(f"{reference}, {count(scores[0].eojeols)} words)", loc="left", fontsize=9, color=INK)
        _draw_points(left, found, scores)
        _draw_bars(right, [_plain(c.name, "") for c in found], scores)
    return figure


def _plain(name: str, otherwise: str) -> str:
    return name if name.isascii() else otherwise


def _draw_points(axes: Axes, found: Sequence[Comparison], scores: Sequence[BoundaryScores]) -> None:
    points = [(c.whole.fit.fertility, score.f1 or 0.0) for c, score in zip(found, scores, strict=True)]
    x, y = zip(*points, strict=True)
    x_limits, y_limits = [c.whole.fertility_interval for c in found], [score.intervals.get("f1") for score in scores]
    bars: Any = {"xerr": _distances(x, x_limits), "yerr": _distances(y, y_limits), "ecolor": PALE}
    axes.errorbar(x, y, fmt="o", color=ACCENT, zorder=3, **bars)
    for place, label in _label_points(points).items():
        axes.annotate(label, place, xytext=(6, 4), textcoords="offset points", fontsize=9, color=INK)
    on = found[0].whole
    text = _plain(on.text, "the text")
    axes.set(xlabel=f"pieces per word\nin {text} ({count(on.fit.eojeols)} words)", ylabel="boundary F1")
    axes.margins(0.15)


def _distances(values: Sequence[float], limits: Sequence[Interval | None]) -> list[list[float]]:
    """From each value down to the lower end of its interval, and up to the upper one."""
    ends = [limit or (value, value) for value, limit in zip(values, limits, strict=True)]
    return [[abs(value - pair[side]) for value, pair in zip(values, ends, strict=True)] for side in (0, 1)]


def _draw_bars(axes: Axes, names: Sequence[str], scores: Sequence[BoundaryScores]) -> None:
    crossing = [100 * (score.crossing or 0.0) for score in scores]
    rows = list(range(len(names)))
    axes.barh(rows, crossing, 0.6, color=ACCENT)
    axes.set_yticks(rows, [f"{row} {name}" for row, name in enumerate(names, start=1)])
    for row, value in enumerate(crossing):
        axes.text(value, row, f" {value:.1f}", va="center", fontsize=8, color=INK)
    axes.set(xlabel="pieces across a boundary, %", xlim=(0, max([1.0, *crossing]) * 1.15))
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)


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
