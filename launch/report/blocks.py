"""What a page of the report consists of: sections of texts, tables and pictures.

Both pages (Markdown and HTML) render the same blocks, so they cannot disagree. Sentences that explain a table are in
``notes.yaml``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import yaml

from launch.console import Table as Table  # the same record is printed on the terminal

NOTES: dict[str, str] = yaml.safe_load(Path(__file__).with_name("notes.yaml").read_text("utf-8"))


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
