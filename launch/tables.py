"""Tables of launch: one record, printed on the terminal or written as Markdown from the same cells.

Text of a cell may come from a file or a name, so it passes through ``corpus.documents.escaping`` in both forms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from corpus.documents.escaping import markdown, visible

if TYPE_CHECKING:
    from rich.console import Console

WIDE = 7  # columns from which the terminal's 80 letters have none to spare for padding


@dataclass(frozen=True, slots=True)
class Table:
    """Cells are text, several lines of it where it has line breaks.

    ``numbers`` are right-aligned columns, ``signs`` columns coloured by their sign; ``is_text`` gives the first column
    the space that long texts need; ``note`` is printed below the table on the terminal; ``heat``: shares by row that
    colour the cells of a confusion matrix on the page.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[int] = ()
    signs: Sequence[int] = ()
    title: str = ""
    folded: bool = False
    is_text: bool = False
    kind: str = "table"
    note: str = ""
    heat: Sequence[Sequence[float]] = ()


def figures(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> Table:
    """A table in which every column but the first holds numbers."""
    return Table(heads, rows, numbers=range(1, len(heads)), title=title, note=note)


def figures_of(
    title: str, rows: Mapping[str, Mapping[str, Any]], columns: Mapping[str, str], note: str = "", *, first: str = ""
) -> Table:
    """``figures`` of records by name; ``columns``: head to format, "{f1:.3f}", empty where the record lacks it."""
    cells = ([name, *(_fill(form, record) for form in columns.values())] for name, record in rows.items())
    return figures(title, (first, *columns), list(cells), note)


def _fill(form: str, record: Mapping[str, Any]) -> str:
    try:
        return form.format_map(record)
    except KeyError:
        return ""


def print_table(table: Table, console: Console) -> None:
    """Print it, long cells folded; "[UNK]" and the like are no mark-up."""
    from rich.table import Table as RichTable
    from rich.text import Text

    printed = RichTable(
        title=Text(visible(table.title)), title_justify="left",
        caption=Text(visible(table.note)) if table.note else None, caption_justify="left",
        padding=(0, 0 if len(table.heads) >= WIDE else 1), min_width=min(76, console.width) if table.note else None,
    )  # fmt: skip
    for column, head in enumerate(table.heads):
        printed.add_column(Text(head), justify="right" if column in table.numbers else "left", overflow="fold")
    for row in table.rows:
        printed.add_row(*(Text(visible(cell, keep="\n")) for cell in row))
    console.print(printed)


def markdown_table(table: Table) -> str:
    """Its title in bold and its cells; the note is left to the page."""
    rule = ["---:" if column in table.numbers else "---" for column in range(len(table.heads))]
    lines = ("| " + " | ".join(map(markdown, row)) + " |" for row in (table.heads, rule, *table.rows))
    return "\n".join([f"**{markdown(table.title)}**", "", *lines])
