"""How numbers are written in tables, reports and log lines."""

from __future__ import annotations

import math


def number(value: float | None, digits: int = 2) -> str:
    """A number for a table; a dash for a missing or undefined one."""
    return "–" if value is None or math.isnan(value) else f"{value:,.{digits}f}"


def count(value: float) -> str:
    """A count with thousands separators."""
    return f"{value:,.0f}"


def share(part: float, total: float) -> str:
    """``part`` as a percentage of ``total``; a dash if ``total`` is 0."""
    return f"{100 * part / total:.2f} %" if total else "–"


def duration(seconds: float) -> str:
    """``45 s``, ``12.0 min`` or ``2.5 h``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
