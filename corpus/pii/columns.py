"""Tables in text: the header cell of a column announces the type of its values.

```
이름,전화,계좌                 the header of the third column is 계좌 (account)
가온,010-0123-4567,110123456789
```
Tables are lines with the same separator (tab, ``|``, slash, comma, semicolon; quoted cells may contain it), or HTML
rows of ``<td>``. A first row with numbers or sentences is no header.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from itertools import accumulate

MAX_CELLS = 200
MAX_HEADER_CHARS = 200  # headers are read again for every value
_SIGNS = ("\t", "|", " / ", ",", ";")
_NUMBER = re.compile("[0-9]{4}|[0-9][-.][0-9]|@")
_SENTENCE = re.compile(r"[가-힣][.?!](?:\s|$)|[:：] ")
_TAG = re.compile(r"<(?:table|t[rdh])(?=[\s>])[^<>]{0,200}>", re.IGNORECASE)


class Tables:
    """The tables of one text. Finding the header of a value takes time linear in the length of its row."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = text.split("\n")
        self._starts = [0, *accumulate(len(line) + 1 for line in self._lines)]
        self._headers: dict[int, list[str]] = {}
        self._sign_of: dict[int, str] = {}
        self._ends: dict[int, list[int]] = {}
        self._first_rows: dict[int, int] = {}

    def header(self, start: int) -> str:
        """The header cell of the column at ``start``; empty if there is none."""
        number = bisect_right(self._starts, start) - 1
        sign = self._sign(number)
        if sign and number and (cells := self._header(number, sign)):
            column = bisect_right(self._cell_ends(number, sign), start - self._starts[number])
            return cells[column] if column < len(cells) else ""
        return self._html_header(start)

    def _sign(self, number: int) -> str:
        """The separator of a line: that of the previous line if the number of cells is equal, else the first found."""
        seen = []
        while number not in self._sign_of and number and self._lines[number]:
            seen.append(number)
            number -= 1
        if number not in self._sign_of:
            self._sign_of[number] = _first_sign(self._lines[number])
        for number in reversed(seen):
            line, above = self._lines[number], self._sign_of[number - 1]
            continues = above and len(_cell_ends(line, above)) == len(_cell_ends(self._lines[number - 1], above))
            self._sign_of[number] = above if continues else _first_sign(line)
        return self._sign_of[number]

    def _header(self, number: int, sign: str) -> list[str]:
        """The cells of the first line of the block of lines with separator ``sign``."""
        seen = []
        while number not in self._headers and number and self._sign(number - 1) == sign:
            seen.append(number)
            number -= 1
        if number not in self._headers:
            line = self._lines[number]
            self._headers[number] = [] if _NUMBER.search(line) or _SENTENCE.search(line) else _cells(line, sign)
        cells = self._headers[number]
        self._headers.update(dict.fromkeys(seen, cells))
        return cells

    def _cell_ends(self, number: int, sign: str) -> list[int]:
        if number not in self._ends:
            self._ends[number] = _cell_ends(self._lines[number], sign)
        return self._ends[number]

    def _html_header(self, start: int) -> str:
        tags = self._tags
        here = bisect_right(tags, (start, "~")) - 1
        row = here
        while row >= 0 and here - row < MAX_CELLS and tags[row][1] in ("td", "th"):
            row -= 1
        if row not in self._first_rows:
            return ""
        header = self._first_rows[row] + here - row
        if header >= row or tags[header][1] not in ("td", "th"):
            return ""
        end = self._text.find("<", tags[header][0], tags[header][0] + MAX_HEADER_CHARS)
        return self._text[tags[header][0] : end].strip() if end >= 0 else ""

    @cached_property
    def _tags(self) -> list[tuple[int, str]]:
        """End and first two letters of each table tag; also records the first row of the table of each row."""
        tags = [(tag.end(), tag[0][1:3].lower()) for tag in _TAG.finditer(self._text)]
        first = -1
        for number, (_, name) in enumerate(tags):
            if name == "ta":
                first = -1
            elif name == "tr":
                first = number if first < 0 else first
                self._first_rows[number] = first
        return tags


def _first_sign(line: str) -> str:
    return next((sign for sign in _SIGNS if sign in line), "")


def _cell_ends(line: str, sign: str) -> list[int]:
    """The ends of the separators of a line, except those inside quotation marks."""
    ends, position = [], 0
    for number, part in enumerate(line.split('"')):
        at = -1 if number % 2 else part.find(sign)
        while at >= 0:
            ends.append(position + at + len(sign))
            at = part.find(sign, at + len(sign))
        position += len(part) + 1
    return ends[:MAX_CELLS]


def _cells(line: str, sign: str) -> list[str]:
    """The cells of a line without quotation marks; quoted separators belong to their cells."""
    starts = [0, *_cell_ends(line, sign)]
    ends = [*(end - len(sign) for end in starts[1:]), len(line)]
    cells = (line[start:end].replace('"', "").strip().strip("'*` ") for start, end in zip(starts, ends, strict=True))
    return [cell if len(cell) <= MAX_HEADER_CHARS else "" for cell in cells][:MAX_CELLS]
