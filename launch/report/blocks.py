"""What a page of the report consists of: sections of texts, tables, bars and pictures.

Both pages (Markdown and HTML) render the same blocks, so they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from launch.console import Table as Table  # the same record is printed on the terminal


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph, a note (small), a warning (highlighted), a heading, or preformatted text."""

    text: str
    kind: Literal["text", "note", "warning", "heading", "code"] = "text"


@dataclass(frozen=True, slots=True)
class Pictures:
    """SVG charts with their captions; ``keys`` explain the lines. The Markdown page leaves them out."""

    charts: Sequence[tuple[str, str]]  # caption, SVG
    keys: Sequence[tuple[str, str]] = ()  # CSS class, meaning
    is_small: bool = False
    kind: str = "pictures"


@dataclass(frozen=True, slots=True)
class Bar:
    """A value with its 95 % interval and a baseline, as shares (0..1) of the longest possible bar."""

    name: str
    detail: str  # in small print after the name
    value: float
    label: str
    small_label: str = ""
    interval: tuple[float, float] | None = None
    baseline: float | None = None


@dataclass(frozen=True, slots=True)
class Bars:
    """Horizontal bars. The Markdown page leaves out those with ``keys``, because a table has the same numbers."""

    rows: Sequence[Bar]
    keys: Sequence[tuple[str, str]] = ()
    kind: str = "bars"


Block = Text | Pictures | Bars | Table


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page with a heading, whose name is the anchor; ``is_folded``: closed, at the end of the page."""

    title: str
    blocks: list[Block] = field(default_factory=list)
    is_folded: bool = False

    @property
    def anchor(self) -> str:
        return "-".join(self.title.lower().split())
