"""What a page of the report consists of: sections of texts, tables and pictures.

Both pages (Markdown and HTML) render the same blocks, so they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from launch.console import Table as Table  # the same record is printed on the terminal


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph, a note (small), a warning (highlighted), or preformatted text."""

    text: str
    kind: Literal["text", "note", "warning", "code"] = "text"


@dataclass(frozen=True, slots=True)
class Pictures:
    """SVG charts with their captions; ``keys`` explain the lines. The Markdown page leaves them out."""

    charts: Sequence[tuple[str, str]]  # caption, SVG
    keys: Sequence[tuple[str, str]] = ()  # CSS class, meaning
    kind: str = "pictures"


Block = Text | Pictures | Table


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page with a heading, whose name is the anchor; ``is_folded``: closed, at the end of the page."""

    title: str
    blocks: list[Block] = field(default_factory=list)
    is_folded: bool = False

    @property
    def anchor(self) -> str:
        return "-".join(self.title.lower().split())
