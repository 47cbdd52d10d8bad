"""What a page of the report is made of: sections of texts, tables, bars and pictures.

Both pages (Markdown and HTML) are rendered from the same blocks, so they cannot disagree. Line charts are SVG in the
colours of the stylesheet (``corpus/card/style.css``), written here and not by a plotting library: byte-equal for equal
numbers, text as text, two kilobytes each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from markupsafe import escape

from corpus.documents.escaping import escape_controls
from launch.console import Table as Table  # written as it is printed on the terminal

LARGE, SMALL = (340, 150), (160, 100)  # of a chart with its labels; it scales with the page
LEFT, BOTTOM, TOP, RIGHT = 30, 30, 8, 8
MOST_DOTS = 30
COLOURS = 8  # line0 … line7 of the stylesheet


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph (notes are set smaller, warnings stand out), the head of what follows, or preformatted text."""

    text: str
    kind: Literal["text", "note", "warning", "heading", "code"] = "text"


@dataclass(frozen=True, slots=True)
class Pictures:
    """SVG charts with their captions; ``keys`` say what the lines are. The Markdown page leaves them out."""

    charts: Sequence[tuple[str, str]]  # caption, SVG
    keys: Sequence[tuple[str, str]] = ()  # class of the stylesheet, meaning
    is_small: bool = False
    kind: str = "pictures"


@dataclass(frozen=True, slots=True)
class Bar:
    """A value with its 95 % interval and a baseline, as shares of the longest bar possible, 0..1."""

    name: str
    detail: str  # set smaller after the name
    value: float
    said: str
    said_more: str = ""
    interval: tuple[float, float] | None = None
    baseline: float | None = None


@dataclass(frozen=True, slots=True)
class Bars:
    """Horizontal bars; the Markdown page leaves those with ``keys`` out, a table says the same."""

    rows: Sequence[Bar]
    keys: Sequence[tuple[str, str]] = ()
    kind: str = "bars"


Block = Text | Pictures | Bars | Table


@dataclass(frozen=True, slots=True)
class Section:
    """A headed part of the page; its name is the anchor. What is folded stands below the results, closed."""

    title: str
    blocks: list[Block] = field(default_factory=list)
    is_folded: bool = False

    @property
    def anchor(self) -> str:
        return "-".join(self.title.lower().split())


class Line(NamedTuple):
    """Values at ascending places; ``is_second`` is drawn in the second colour, with dots where they are few.

    ``colour``: of several lines, 0 to ``COLOURS`` - 1; ``band``: lowest and highest around each value.
    """

    places: Sequence[float]
    values: Sequence[float]
    is_second: bool = False
    colour: int | None = None
    band: Sequence[tuple[float, float]] = ()


def line_chart(
    lines: Sequence[Line], across: str, up: str, *, from_zero: bool = False, size: tuple[int, int] = LARGE
) -> str:
    """Lines over one pair of axes.

    Args:
        across: what the horizontal axis counts; empty where the page says it.
        up: the same for the vertical axis; it is read out by screen readers, too.
        from_zero: the vertical axis begins at 0.
    """
    width, height = size
    lines = [line for line in lines if line.places]
    values = [value for line in lines for value in (*line.values, *(end for pair in line.band for end in pair))]
    places = [place for line in lines for place in line.places]
    ups = ticks(0.0 if from_zero else min(values), max(values))
    right, floor = width - RIGHT, height - (BOTTOM if across else BOTTOM - 14)
    first, last = min(places), max(places)
    x = _scale(first, last, LEFT, right)
    y = _scale(min(*values, ups[0]), max(*values, ups[-1]), floor, TOP)
    shapes = [
        f'<path d="M{LEFT} {y(tick):.1f}H{right}"/>'
        f'<text class="left" x="{LEFT - 5}" y="{y(tick) + 3:.1f}">{tick:g}</text>'
        for tick in ups
    ]
    shapes += [
        f'<text x="{x(tick):.1f}" y="{floor + 13}">{tick:,g}</text>'
        for tick in ticks(first, last, 5 if width > 200 else 3)
        if first <= tick <= last and tick == int(tick)
    ]
    shapes += [_draw(line, x, y) for line in lines]
    if across:
        shapes.append(f'<text x="{(LEFT + right) / 2}" y="{height - 3}">{escape(escape_controls(across))}</text>')
    box = f'viewBox="0 0 {width} {height}"'
    return f'<svg class="plot" {box} role="img" aria-label="{escape(escape_controls(up))}">{"".join(shapes)}</svg>'


def _scale(low: float, high: float, begin: float, end: float) -> Callable[[float], float]:
    """Values from low to high to pixels; a single value stands in the middle."""
    return lambda value: begin + (end - begin) * ((value - low) / (high - low) if high > low else 0.5)


def _draw(line: Line, x: Callable[[float], float], y: Callable[[float], float]) -> str:
    kind = "second" if line.is_second else "first" if line.colour is None else f"line line{line.colour}"
    points = [(x(place), y(value)) for place, value in zip(line.places, line.values, strict=True)]
    path = "L".join(f"{a:.1f} {b:.1f}" for a, b in points)
    has_dots = len(points) == 1 or (line.is_second and len(points) <= MOST_DOTS)
    dots = "".join(f'<circle class="{kind}" cx="{a:.1f}" cy="{b:.1f}" r="2.5"/>' for a, b in points if has_dots)
    edges = [(x(place), y(low), y(high)) for place, (low, high) in zip(line.places, line.band, strict=False)]
    around = "L".join([*(f"{a:.1f} {b:.1f}" for a, _, b in edges), *(f"{a:.1f} {b:.1f}" for a, b, _ in edges[::-1])])
    band = f'<path class="band line{line.colour}" d="M{around}Z"/>' if edges else ""
    return f'{band}<path class="{kind}" d="M{path}"/>{dots}'


def ticks(low: float, high: float, wanted: int = 4) -> list[float]:
    """Round places that span low to high.

    >>> ticks(5.2, 8.1), ticks(0, 0.34), ticks(1, 3200, 5)
    ([5.0, 6.0, 7.0, 8.0, 9.0], [0.0, 0.1, 0.2, 0.3, 0.4], [0, 500, 1000, 1500, 2000, 2500, 3000, 3500])
    """
    span = (high - low) or abs(high) or 1.0
    size = 10 ** math.floor(math.log10(span / wanted))
    step = min((size * factor for factor in (1, 2, 5, 10)), key=lambda step: abs(span / step - wanted))
    digits = max(0, -math.floor(math.log10(step)))
    return [round(number * step, digits) for number in range(math.floor(low / step), math.ceil(high / step) + 1)]
