"""Charts of the report as SVG, in the colours of the stylesheet (``corpus/card/style.css``).

They are written here and not by a plotting library: equal numbers give equal bytes, text stays text, and a chart takes
two kilobytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from corpus.documents.escaping import escape_controls
from corpus.documents.templates import load_templates

WIDTH, HEIGHT = 340, 150  # with the labels; a chart scales with the page
LEFT, BOTTOM, TOP, RIGHT = 44, 30, 8, 8  # margins
MAX_DOTS = 30


class Line(NamedTuple):
    """Values at ascending places; ``style``: class of the stylesheet. Few values of the class "second" get dots."""

    places: Sequence[float]
    values: Sequence[float]
    style: str = "first"


def line_chart(lines: Sequence[Line], x_label: str, y_label: str, *, from_zero: bool = False) -> str:
    """Lines over one pair of axes with their labels.

    Args:
        from_zero: start the vertical axis at 0.
    """
    lines = [line for line in lines if line.places]
    values = [value for line in lines for value in line.values]
    places = [place for line in lines for place in line.places]
    y_ticks = ticks(0.0 if from_zero else min(values), max(values))
    right, floor = WIDTH - RIGHT, HEIGHT - BOTTOM
    first, last = min(places), max(places)
    x = _scale(first, last, LEFT, right)
    y = _scale(min(*values, y_ticks[0]), max(*values, y_ticks[-1]), floor, TOP)
    x_ticks = [tick for tick in ticks(first, last, 5) if first <= tick <= last and tick == int(tick)]
    template = load_templates("launch.report", autoescape=True).get_template("chart.svg.j2")
    return template.render(
        width=WIDTH, height=HEIGHT, left=LEFT, right=right, top=TOP, floor=floor,
        x_label=escape_controls(x_label), y_label=escape_controls(y_label),
        x_ticks=[(tick, x(tick)) for tick in x_ticks], y_ticks=[(tick, y(tick)) for tick in y_ticks],
        lines=[(line.style, [(x(a), y(b)) for a, b in zip(line.places, line.values, strict=True)]) for line in lines],
        max_dots=MAX_DOTS,
    ).rstrip()  # fmt: skip


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    """Map values from low..high to pixels; a single value is in the middle."""
    return lambda value: start + (end - start) * ((value - low) / (high - low) if high > low else 0.5)


def ticks(low: float, high: float, target: int = 4) -> list[float]:
    """About ``target`` round values that span low to high.

    >>> ticks(5.2, 8.1), ticks(0, 0.34), ticks(1, 3200, 5)
    ([5.0, 6.0, 7.0, 8.0, 9.0], [0.0, 0.1, 0.2, 0.3, 0.4], [0, 500, 1000, 1500, 2000, 2500, 3000, 3500])
    """
    span = (high - low) or abs(high) or 1.0
    size = 10 ** math.floor(math.log10(span / target))
    step = min((size * factor for factor in (1, 2, 5, 10)), key=lambda step: abs(span / step - target))
    digits = max(0, -math.floor(math.log10(step)))
    return [round(number * step, digits) for number in range(math.floor(low / step), math.ceil(high / step) + 1)]
