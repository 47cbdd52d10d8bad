"""What a page of the report is made of: sections of texts, tables, figures and before/after rows.

Both pages (Markdown and HTML) are rendered from the same blocks, so they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from launch.tables import Table as Table  # written as it is printed on the terminal


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph; notes are set smaller, warnings stand out."""

    text: str
    is_note: bool = False
    is_warning: bool = False
    kind: str = "text"


@dataclass(frozen=True, slots=True)
class Heading:
    """The head of what follows inside a section."""

    text: str
    kind: str = "heading"


@dataclass(frozen=True, slots=True)
class Code:
    """Preformatted text, such as the recipe."""

    text: str
    kind: str = "code"


@dataclass(frozen=True, slots=True)
class Picture:
    """An SVG figure; the Markdown page leaves it out."""

    svg: str
    kind: str = "figure"


@dataclass(frozen=True, slots=True)
class Part:
    """A run of text, marked or plain."""

    text: str
    is_marked: bool = False


@dataclass(frozen=True, slots=True)
class MarkedRow:
    """One text before and after a change, what changed being marked on both sides."""

    name: str
    before: Sequence[Part]
    after: Sequence[Part]


@dataclass(frozen=True, slots=True)
class Marked:
    """Rows of text before and after."""

    rows: Sequence[MarkedRow]
    title: str = ""
    kind: str = "marked"


Block = Text | Heading | Code | Picture | Table | Marked


@dataclass(frozen=True, slots=True)
class Section:
    """A headed part of the page."""

    title: str
    blocks: list[Block] = field(default_factory=list)
