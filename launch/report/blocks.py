"""What a page of the report is made of: sections of texts, tables, bars, pictures and before/after rows.

Both pages (Markdown and HTML) are rendered from the same blocks, so they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


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
    """Horizontal bars; the Markdown page leaves them out, a table says the same."""

    rows: Sequence[Bar]
    keys: Sequence[tuple[str, str]] = ()
    kind: str = "bars"


@dataclass(frozen=True, slots=True)
class Table:
    """Cells are text, several lines of it where it has line breaks.

    ``numbers`` are right-aligned columns, ``signs`` columns coloured by their sign, ``heat`` the columns of a confusion
    matrix (row by row, shares of the row); ``is_text`` gives the first column the space that long texts need.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[int] = ()
    signs: Sequence[int] = ()
    title: str = ""
    folded: bool = False
    is_text: bool = False
    heat: Sequence[Sequence[float]] = ()
    kind: str = "table"


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


Block = Text | Heading | Code | Pictures | Bars | Table | Marked


@dataclass(frozen=True, slots=True)
class Section:
    """A headed part of the page; its name is the anchor. What is folded stands below the results, closed."""

    title: str
    blocks: list[Block] = field(default_factory=list)
    is_folded: bool = False

    @property
    def anchor(self) -> str:
        return "-".join(self.title.lower().split())
