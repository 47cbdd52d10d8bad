"""CSV and TSV tables, read as by the csv module; unchanged cells keep all their bytes.

The header of a column announces the type of its cells. A first row without digits and personal data is a header; in a
table without a header, the cell to the left may be a label (``전화,010-…``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from corpus.documents.encoding import UNDECODED
from corpus.pii.detect import find_pii
from corpus.reading import containers
from corpus.reading.containers import TOO_LONG, UnreadableRecord
from launch.pii.json_text import literal
from launch.pii.streams import UNDECODABLE, ReportProblem
from launch.pii.work import EVERYTHING, Hiding, Paths, RecordWork, Work, escape_key, nfc, paths_below

MAX_HEAD_CHARS = 60
DELIMITERS = ",\t;|"
_WORD = re.compile(r"\D+[1-9]?")  # tel1


class Row(NamedTuple):
    """A raw row; ``cells`` are (start, end, value), ``line`` is its first line."""

    line: int
    raw: str
    cells: list[tuple[int, int, str]]
    is_open: bool = False  # an unclosed quote

    @property
    def values(self) -> list[str]:
        return [value for _, _, value in self.cells]

    @property
    def numbers(self) -> list[str]:
        return [str(number) for number in range(1, len(self.cells) + 1)]


def change_rows(texts: Iterable[str], delimiter: str, paths: Paths, work: Work, report: ReportProblem) -> Iterator[str]:
    """The table without personal data (each row is a document), or a JSON line per row without the header.

    ``UnreadableRecord`` if no selected column exists, or a row is too long.
    """
    table = Table(paths)
    for position, row in enumerate(rows_of(texts, delimiter)):
        if row.is_open or UNDECODED.search(row.raw):
            report(f"line {row.line}", UNDECODABLE if UNDECODED.search(row.raw) else "open_quote", row.raw)
            continue
        is_head = not table.is_known and table.learn(row)
        if isinstance(work, Hiding) and is_head:
            yield row.raw
        elif isinstance(work, Hiding) or (not is_head and any(row.values)):
            yield change_row(table, row, work, position)


def choose_delimiter(head: str, is_tsv: bool) -> str:
    """A tab for TSV; else a comma, or the most frequent other delimiter of a first line without commas."""
    if is_tsv:
        return "\t"
    first = head.lstrip("\ufeff\r\n").partition("\n")[0]
    return "," if "," in first or not any(map(first.count, DELIMITERS)) else max(DELIMITERS, key=first.count)


def rows_of(blocks: Iterable[str], delimiter: str) -> Iterator[Row]:
    """The rows of a table in blocks; joined, they are the table. ``UnreadableRecord`` for too long rows."""
    escaped = re.escape(delimiter)
    plain = rf"[^{escaped}\r\n]*+"
    pattern = re.compile(rf'(?:"((?:[^"]++|"")*+)("?)({plain})|(?!")({plain}))({escaped}|\r\n|\n|\r|\Z)')
    held, missing, line = [], 1, 1
    for block in chain(blocks, (None,)):
        if block is not None:
            held.append(block)
            missing -= len(block)
            if missing > 0:  # searched again only when doubled, so the time is linear
                continue
        text, position = "".join(held), 0
        while row := _next_row(text, position, line, pattern, is_end=block is None):
            yield row
            position, line = position + len(row.raw), line + row.raw.count("\n")
        held, missing = [text[position:]], len(text) - position
        if missing > containers.RECORD_BYTES:
            raise UnreadableRecord(TOO_LONG)


def _next_row(text: str, start: int, line: int, pattern: re.Pattern[str], *, is_end: bool) -> Row | None:
    """The row at ``start``; None if it is incomplete."""
    if start == len(text):
        return None
    cells, position = [], start
    while match := pattern.match(text, position):  # every text starts with a cell
        if match.end() == len(text) and not is_end:
            return None
        quoted, closing, rest, plain, end = match.groups()
        value = plain if quoted is None else quoted.replace('""', '"') + rest
        cells.append((position - start, match.end() - len(end) - start, value))
        position = match.end()
        if not end or end in "\r\n":
            return Row(line, text[start:position], cells, quoted is not None and not closing)
    return None


@dataclass(slots=True)
class Table:
    """The columns of a table, from its first row."""

    fields: Paths = EVERYTHING
    head: list[str] = field(default_factory=list)  # empty without a header
    is_known: bool = False
    chosen: list[bool] = field(default_factory=list)

    def learn(self, row: Row) -> bool:
        """Read the first row; returns whether it is a header. ``UnreadableRecord`` without a selected column."""
        values = [value.strip() for value in row.values]
        self.is_known = True
        if looks_like_a_head(values):
            self.head = values
        if self.fields != EVERYTHING:
            names = self.head or row.numbers
            self.chosen = [() in paths_below(self.fields, name) for name in names]
            if not any(self.chosen):
                raise UnreadableRecord(f"no_field: {', '.join(names)}")
        return bool(self.head)

    def selected_cells(self, row: Row) -> Iterator[tuple[int, str, str]]:
        """(place, value, label) of every selected non-empty cell."""
        before = ""
        for place, value in enumerate(row.values):
            if value.strip() and (not self.chosen or (place < len(self.chosen) and self.chosen[place])):
                label = before if not self.head else self.head[place] if place < len(self.head) else ""
                yield place, value, label
            before = value.strip() if _is_word(value.strip()) else ""


def looks_like_a_head(values: Sequence[str]) -> bool:
    """Whether a first row is a header: unique words without digits and personal data."""
    is_named = all(map(_is_word, values)) and len(set(values)) == len(values)
    return is_named and not any(find_pii(nfc(value)) for value in values)


def _is_word(value: str) -> bool:
    return len(value) <= MAX_HEAD_CHARS and bool(_WORD.fullmatch(value))


def change_row(table: Table, row: Row, work: Work, position: int) -> str:
    """The row without personal data, or a JSON line with its cells by column, and spans by JSON pointer."""
    names = [*table.head, *row.numbers[len(table.head) :]]
    strings = RecordWork(work, str(position)).learn(dict(zip(names, row.values, strict=False)))
    pieces, end = [], 0
    for place, value, label in table.selected_cells(row):
        if (new := strings.change(value, label, f"/{escape_key(names[place])}")) != value:
            start, next_end, _ = row.cells[place]
            if row.raw[start : start + 1] == '"' or any(sign in new for sign in f'"\r\n{DELIMITERS}'):
                new = '"' + new.replace('"', '""') + '"'
            pieces += [row.raw[end:start], new]
            end = next_end
    if isinstance(work, Hiding):
        return "".join([*pieces, row.raw[end:]])
    record: dict[str, Any] = dict(zip(names, map(nfc, row.values), strict=False))
    return literal(record | {"spans": strings.spans}) + "\n"
