"""What tables, reports and messages share: how numbers are written, how items are grouped and nested ones named."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

Item = TypeVar("Item")
Key = TypeVar("Key")


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
    """``40 s``, ``2.5 min``, ``45 min``, ``5.0 h``, ``12 days``, ``200 years``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    for unit, size, longest in (("min", 60, 90), ("h", 3600, 36), ("days", 86_400, 700)):
        if (value := seconds / size) < longest:
            return f"{value:.1f} {unit}" if value < 9.95 else f"{value:.0f} {unit}"
    return f"{seconds / 86_400 / 365:,.0f} years"


def group_by(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """The items with equal keys together, in the order of the first of each."""
    parts: dict[Key, list[Item]] = {}
    for item in items:
        parts.setdefault(key(item), []).append(item)
    return parts


def flatten(value: Any, separator: str, prefix: str = "") -> dict[str, Any]:
    """The values in nested mappings by their joined keys.

    >>> flatten({"a": {"b": 1, "c": {}}, "d": [2]}, ".")
    {'a.b': 1, 'd': [2]}
    """
    if not isinstance(value, Mapping):
        return {prefix: value}
    inner = (flatten(v, separator, f"{prefix}{separator}{key}" if prefix else str(key)) for key, v in value.items())
    return {key: leaf for flat in inner for key, leaf in flat.items()}
