"""What a page of the report is made of: sections of texts, tables, bars and pictures.

Both pages (Markdown and HTML) are rendered from the same blocks, so they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from launch.console import Table as Table  # written as it is printed on the terminal


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
