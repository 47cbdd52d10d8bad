"""Figures of the report as SVG text: loss curve, scores beside the trivial baseline, personal data by type.

Labels are English (the default font has no Hangul). Files are byte-equal for equal numbers: no date, fixed ids.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("svg")
from matplotlib.figure import Figure

INK, ACCENT, SECOND, PALE = "#1f2a37", "#0b6e99", "#d97706", "#c9d3dc"
STYLE: Any = {
    "svg.hashsalt": "malmoi",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": PALE,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#eef2f5",
}


class Curve(NamedTuple):
    """Loss (nats) and masked accuracy (%) at some optimizer steps."""

    steps: Sequence[int]
    losses: Sequence[float]
    accuracies: Sequence[float]


def draw_loss(training: Curve, held_out: Curve) -> str:
    """Loss (left) and masked accuracy in % (right) over optimizer steps; measurements on held-out rows as points."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 2.5), layout="constrained")
        left, right = figure.subplots(1, 2)
        for axis, values, points in (
            (left, training.losses, held_out.losses),
            (right, training.accuracies, held_out.accuracies),
        ):
            axis.plot(training.steps, values, color=ACCENT, linewidth=1.8, label="training")
            if points:
                style: Any = {"linestyle": "--", "linewidth": 1.0, "marker": "o", "markersize": 3.5}
                axis.plot(held_out.steps, points, color=SECOND, label="held out", **style)
        left.set(xlabel="optimizer step", ylabel="masked-LM loss (nats)")
        left.legend(frameon=False)
        right.set(xlabel="optimizer step", ylabel="masked accuracy (%)", ylim=(0, None))
        return _svg(figure)


def draw_scores(names: Sequence[str], scores: Sequence[float], trivial: Sequence[float]) -> str:
    """One pair of horizontal bars a task: the model above the trivial baseline, 0..100."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 0.45 * len(names) + 0.8), layout="constrained")
        axis = figure.subplots()
        rows = list(range(len(names)))
        axis.barh([row - 0.19 for row in rows], scores, 0.36, color=ACCENT, label="model")
        axis.barh([row + 0.19 for row in rows], trivial, 0.36, color=PALE, label="trivial baseline")
        for row, score in zip(rows, scores, strict=True):
            axis.text(score + 1, row - 0.19, f"{score:.1f}", va="center", fontsize=8, color=INK)
        axis.set_yticks(rows, names)
        axis.set(xlim=(0, 108), xlabel="score (0 to 100)")
        axis.invert_yaxis()
        axis.grid(axis="y", visible=False)
        axis.legend(frameon=False, loc="lower right", ncols=2, bbox_to_anchor=(1.0, 1.0))
        return _svg(figure)


def draw_counts(counts: Mapping[str, int], label: str) -> str:
    """Horizontal bars for named counts, in the order given."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 0.22 * len(counts) + 0.7), layout="constrained")
        axis = figure.subplots()
        axis.barh(list(counts), list(counts.values()), 0.7, color=ACCENT)
        for row, count in enumerate(counts.values()):
            axis.text(count, row, f" {count:,}", va="center", fontsize=8, color=INK)
        axis.set(xlabel=label, xlim=(0, max(1, *counts.values()) * 1.12))
        axis.invert_yaxis()
        axis.grid(axis="y", visible=False)
        return _svg(figure)


def _svg(figure: Figure) -> str:
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]
