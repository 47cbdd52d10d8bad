"""The look of pictures that matplotlib draws for single tools, and the same bytes for the same numbers."""

from __future__ import annotations

from typing import Any

import matplotlib

matplotlib.use("svg")

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
