"""Charts of the report as SVG, in the colours of the stylesheet (``corpus/card/style.css``).

They are written here and not by a plotting library: equal numbers give equal bytes, text stays text, and a chart takes
two kilobytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import escape

from corpus.documents.escaping import escape_controls

LARGE, SMALL = (340, 150), (160, 100)  # width and height with the labels; a chart scales with the page
LEFT, BOTTOM, TOP, RIGHT = 30, 30, 8, 8  # margins
MAX_DOTS = 30
COLOURS = 8  # line0 … line7 of the stylesheet
FIRST_AXIS = 40  # x of the first of parallel axes
TOP_SHARE = 0.75  # trials ranked above this share are drawn in colour
SPREAD = 7.0  # pixels over which parallel lines with equal values are spread


class Line(NamedTuple):
    """Values at ascending places; ``is_second`` uses the second colour, with dots if there are few values.

    ``colour``: 0 to ``COLOURS`` - 1, if there are several lines; ``band``: lowest and highest around each value.
    """

    places: Sequence[float]
    values: Sequence[float]
    is_second: bool = False
    colour: int | None = None
    band: Sequence[tuple[float, float]] = ()


def line_chart(
    lines: Sequence[Line], x_label: str, y_label: str, *, from_zero: bool = False, size: tuple[int, int] = LARGE
) -> str:
    """Lines over one pair of axes.

    Args:
        x_label: empty if the page explains the axis.
        y_label: not drawn, but read out by screen readers.
        from_zero: start the vertical axis at 0.
    """
    width, height = size
    lines = [line for line in lines if line.places]
    values = [value for line in lines for value in (*line.values, *(end for pair in line.band for end in pair))]
    places = [place for line in lines for place in line.places]
    y_ticks = ticks(0.0 if from_zero else min(values), max(values))
    right, floor = width - RIGHT, height - (BOTTOM if x_label else BOTTOM - 14)
    first, last = min(places), max(places)
    x = _scale(first, last, LEFT, right)
    y = _scale(min(*values, y_ticks[0]), max(*values, y_ticks[-1]), floor, TOP)
    shapes = [
        f'<path d="M{LEFT} {y(tick):.1f}H{right}"/>'
        f'<text class="left" x="{LEFT - 5}" y="{y(tick) + 3:.1f}">{tick:g}</text>'
        for tick in y_ticks
    ]
    shapes += [
        f'<text x="{x(tick):.1f}" y="{floor + 13}">{tick:,g}</text>'
        for tick in ticks(first, last, 5 if width > 200 else 3)
        if first <= tick <= last and tick == int(tick)
    ]
    shapes += [_draw_line(line, x, y) for line in lines]
    if x_label:
        shapes.append(f'<text x="{(LEFT + right) / 2}" y="{height - 3}">{_text(x_label)}</text>')
    return _svg(shapes, size, y_label)


def _svg(shapes: Sequence[str], size: tuple[int, int], label: str) -> str:
    box = f'viewBox="0 0 {size[0]} {size[1]}"'
    return f'<svg class="plot" {box} role="img" aria-label="{_text(label)}">{"".join(shapes)}</svg>'


def _text(text: str) -> str:
    return str(escape(escape_controls(text)))


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    """Map values from low..high to pixels; a single value is in the middle."""
    return lambda value: start + (end - start) * ((value - low) / (high - low) if high > low else 0.5)


def _draw_line(line: Line, x: Callable[[float], float], y: Callable[[float], float]) -> str:
    kind = "second" if line.is_second else "first" if line.colour is None else f"line line{line.colour}"
    points = [(x(place), y(value)) for place, value in zip(line.places, line.values, strict=True)]
    path = "L".join(f"{a:.1f} {b:.1f}" for a, b in points)
    has_dots = len(points) == 1 or (line.is_second and len(points) <= MAX_DOTS)
    dots = "".join(f'<circle class="{kind}" cx="{a:.1f}" cy="{b:.1f}" r="2.5"/>' for a, b in points if has_dots)
    edges = [(x(place), y(low), y(high)) for place, (low, high) in zip(line.places, line.band, strict=False)]
    outline = "L".join([*(f"{a:.1f} {b:.1f}" for a, _, b in edges), *(f"{a:.1f} {b:.1f}" for a, b, _ in edges[::-1])])
    band = f'<path class="band line{line.colour}" d="M{outline}Z"/>' if edges else ""
    return f'{band}<path class="{kind}" d="M{path}"/>{dots}'


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


def parallel_coordinates(
    axes: Mapping[str, Sequence[Any]], trials: Sequence[Mapping[str, Any]], metric: str, names: Mapping[str, str]
) -> str:
    """A line for each trial over one axis per hyperparameter and one for the score; the best trial is on top.

    Args:
        axes: the values of each hyperparameter, at equal distances in this order; those with one value are left out.
        trials: records with ``number``, ``values`` and ``score``; trials without a score are left out.
        names: labels of the hyperparameters.
    """
    axes = {name: sorted(values, key=lambda v: (isinstance(v, str), v)) for name, values in axes.items()}
    axes = {name: values for name, values in axes.items() if len(values) > 1}
    scored = sorted((trial for trial in trials if trial["score"] is not None), key=lambda trial: trial["score"])
    low, high = (scored[0]["score"], scored[-1]["score"]) if scored else (0.0, 1.0)
    floor, right = LARGE[1] - BOTTOM + 14, LARGE[0] - LEFT
    x = [FIRST_AXIS + place * (right - FIRST_AXIS) / len(axes) for place in range(len(axes) + 1)] if axes else [right]
    y = _scale(0.0, 1.0, floor - SPREAD / 2, TOP + SPREAD / 2)
    shapes = [f'<path d="M{at:.1f} {TOP}V{floor}"/>' for at in x]
    for rank, trial in enumerate(scored, 1):
        offset = (trial["number"] * 0.618 % 1 - 0.5) * SPREAD  # keeps lines with equal values apart
        shares = [values.index(trial["values"][name]) / (len(values) - 1) for name, values in axes.items()]
        heights = [*(y(share) + offset for share in shares), y((trial["score"] - low) / ((high - low) or 1.0))]
        points = "L".join(f"{at:.1f} {up:.1f}" for at, up in zip(x, heights, strict=True))
        is_top = rank / len(scored) > TOP_SHARE
        kind = ' class="first"' if rank == len(scored) else ' class="second"' if is_top else ""
        shapes.append(f'<path{kind} d="M{points}"/>')
    labels = [
        (at, place / (len(values) - 1), short(value))
        for at, values in zip(x, axes.values(), strict=False)
        for place, value in enumerate(values)
    ]
    for at, share, text in [*labels, (x[-1], 0.0, f"{low:.1f}"), (x[-1], 1.0, f"{high:.1f}")]:
        shapes.append(f'<text class="over" x="{at - 4:.1f}" y="{y(share) + 3:.1f}">{_text(text)}</text>')
    for at, name in zip(x, [*(names.get(name, name) for name in axes), metric], strict=True):
        shapes.append(f'<text x="{at:.1f}" y="{floor + 12}">{_text(name)}</text>')
    return _svg(shapes, LARGE, f"values of {len(scored)} trials by {metric}")


def short(value: Any) -> str:
    """A setting in few characters: ``3e-05``, ``16``, ``swa``."""
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
