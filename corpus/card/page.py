"""Rendering of the data card: number formats, bars, excerpts, escaping.

Markdown and HTML are rendered from the same facts; equal facts give equal bytes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from corpus.documents.escaping import code_block, escape_controls, escape_markdown
from corpus.documents.templates import load_templates

SHOWN_AROUND = 60  # characters before what changed
MAX_SHOWN = 240


def count(value: float) -> str:
    """With thousands separators."""
    return f"{value:,.0f}"


def share(part: float, whole: float) -> str:
    """A percentage; a dash if ``whole`` is 0, and "< 0.01 %" for small non-zero parts."""
    if not whole:
        return "–"
    percent = 100 * part / whole
    return f"{percent:.2f} %" if not part or percent >= 0.01 else "< 0.01 %"


def size(byte_count: float) -> str:
    """A size in decimal units, as in the paper."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if byte_count < 1000:
            return f"{byte_count:,.0f} {unit}" if unit == "bytes" else f"{byte_count:.2f} {unit}"
        byte_count /= 1000
    return f"{byte_count:,.2f} TB"


def width(part: float, whole: float) -> str:
    """Width of a bar in percent; non-zero parts are always visible."""
    return "0" if not part or not whole else f"{max(0.4, 100 * part / whole):.2f}"


def cut(text: str, chars: int = MAX_SHOWN) -> str:
    return text if len(text) <= chars else text[:chars] + "…"


def excerpts(before: str, after: str) -> tuple[str, str]:
    """Both texts from shortly before their first difference on, cut."""
    start = max(0, first_difference(before, after) - SHOWN_AROUND)
    first, second = ("…" * bool(start) + cut(text[start:]) for text in (before, after))
    return first, second


def first_difference(a: str, b: str) -> int:
    return bisect_left(range(min(len(a), len(b))), True, key=lambda n: a[: n + 1] != b[: n + 1])


def stylesheet() -> str:
    return Path(__file__).with_name("style.css").read_text("utf-8")


def read_templates() -> list[str]:
    return [path.read_text("utf-8") for path in sorted(Path(__file__).parent.glob("*.j2"))]


def render(template: str, facts: Mapping[str, Any]) -> str:
    """Render a template of this folder; ``.html.j2`` templates escape HTML automatically.

    All printed text passes through ``escape_controls``; the filter ``lines`` keeps line ends.
    """
    is_html = template.endswith("html.j2")
    environment = load_templates("corpus.card", autoescape=is_html, finalize=_shown if is_html else None)
    shown = (stylesheet, count, share, size, width, escape_controls, cut)
    environment.globals |= {function.__name__: function for function in shown}
    environment.filters |= {"md": escape_markdown, "fenced": code_block, "lines": _lines}
    return environment.get_template(template).render(**facts)


def _shown(value: Any) -> Any:
    return escape_controls(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _lines(text: str) -> Markup:
    return escape(escape_controls(text, keep="\n"))
