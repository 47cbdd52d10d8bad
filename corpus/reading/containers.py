"""Split a stream of bytes into raw records: lines, paragraphs of a text file, ``<doc>`` blocks, items of a JSON array.

One record is in memory at a time; records above ``RECORD_BYTES`` are truncated. A damaged record does not affect the
next one. Numbers and offsets count from the start of the stream. Scanners of lines decode them to UTF-8.
"""

from __future__ import annotations

import codecs
import itertools
import json
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, NamedTuple

from corpus.documents.encoding import UTF8, blocks_to_utf8, decodes, line_to_utf8

RECORD_BYTES = 32 << 20
EXCERPT_BYTES = 400
MAX_UNFINISHED = 64  # each needs a search of the rest; an array with more is not read further
PARAGRAPH_BYTES = 4 << 20  # splits .txt files without blank lines

TOO_LONG = "record_too_long"
BROKEN_JSON = "broken_json"
UNFINISHED = "unfinished_record"
GIVEN_UP = "rest_of_the_array"
INVALID_UTF8 = "invalid_utf8"
NOT_AN_OBJECT = "not_an_object"
TOO_DEEP = "json_too_deep"
INT_DIGITS = 4_300  # converting longer numbers to int takes more than linear time

Blocks = Iterator[bytes]


class Item(NamedTuple):
    """A raw record: ``number`` is its line or array item, from 1; ``problem`` is the reason why it is unreadable."""

    number: int
    offset: int
    raw: bytes
    problem: str = ""
    value: Any = None  # the parsed item of an array


class UnreadableRecord(Exception):
    """An unreadable record; the message is the reason in the counts."""


_decode_json = json.JSONDecoder(parse_int=lambda digits: (int if len(digits) <= INT_DIGITS else Decimal)(digits)).decode


def parse_json(raw: bytes) -> Any:
    """Parse JSON; integers of more than ``INT_DIGITS`` digits become ``Decimal``.

    Raises:
        UnreadableRecord: with the reason.
    """
    try:
        return _decode_json(raw.decode("utf-8"))
    except UnicodeDecodeError:
        reason = INVALID_UTF8
    except RecursionError:  # about 1,000 levels
        reason = TOO_DEEP
    except ValueError:
        reason = BROKEN_JSON
    raise UnreadableRecord(reason)


def parse_object(raw: bytes) -> dict[str, Any]:
    """Parse a JSON object; raises as ``parse_json``."""
    value = parse_json(raw)
    if not isinstance(value, dict):
        raise UnreadableRecord(NOT_AN_OBJECT)
    return value


def scan_lines(blocks: Blocks, array_key: str | None = None, encoding: str = UTF8) -> Iterator[Item]:
    """Lines without line ends, including empty ones."""
    parts: list[bytes] = []
    number, offset, size = 1, 0, 0
    for block in blocks:
        for place, piece in enumerate(block.split(b"\n")):
            if place:
                yield _line(number, offset, parts, size, encoding)
                parts, number, offset, size = [], number + 1, offset + size + 1, 0
            if size <= RECORD_BYTES:
                parts.append(piece)
            size += len(piece)
    if size:
        yield _line(number, offset, parts, size, encoding)


def _line(number: int, offset: int, parts: list[bytes], size: int, encoding: str) -> Item:
    if size > RECORD_BYTES:
        return Item(number, offset, line_to_utf8(parts[0][:EXCERPT_BYTES], encoding)[:EXCERPT_BYTES], TOO_LONG)
    raw = line_to_utf8(b"".join(parts), encoding).removesuffix(b"\r")
    return Item(number, offset, raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw)


def scan_paragraphs(blocks: Blocks, array_key: str | None = None, encoding: str = UTF8) -> Iterator[Item]:
    """Documents of plain text, separated by blank lines.

    A line that is too long or not valid is a separate, unreadable item; the document continues without it.
    """
    first: Item | None = None
    lines: list[bytes] = []
    size = 0
    for line in scan_lines(blocks, encoding=encoding):
        is_blank = not line.raw.strip()
        if first and (is_blank or size > PARAGRAPH_BYTES):
            yield first._replace(raw=b"\n".join(lines))
            first, lines, size = None, [], 0
        if problem := line.problem or ("" if decodes(line.raw, UTF8) else INVALID_UTF8):
            yield line._replace(problem=problem)
        elif not is_blank:
            first = first or line
            lines.append(line.raw)
            size += len(line.raw)
    if first:
        yield first._replace(raw=b"\n".join(lines))


def scan_docs(blocks: Blocks, array_key: str | None = None, encoding: str = UTF8) -> Iterator[Item]:
    """``<doc id="…" …>`` blocks of WikiExtractor, without the closing line."""
    first: Item | None = None
    lines: list[bytes] = []
    size = 0
    for line in scan_lines(blocks, encoding=encoding):
        if line.raw.startswith(b"<doc "):
            if first:
                yield first._replace(raw=lines[0], problem=UNFINISHED)
            first, lines, size = line, [line.raw], 0
        elif first is None:
            if line.raw.strip():
                yield line._replace(problem=line.problem or "outside_of_doc")
        elif line.raw.strip() == b"</doc>":
            yield first._replace(raw=b"\n".join(lines), problem=TOO_LONG if size > RECORD_BYTES else "")
            first = None
        else:
            size += len(line.raw)
            if size <= RECORD_BYTES:
                lines.append(line.raw)
    if first:
        yield first._replace(raw=lines[0], problem=UNFINISHED)


_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}"]', re.S)
_ITEM = re.compile(rb"[^\s,]")
_AFTER_OBJECT = re.compile(rb"\}\s*+,\s*+(?=\{)")
_AFTER_VALUE = re.compile(rb",\s*+(?=\{)")


class Window:
    """The current part of a stream, from ``place`` on; grows on demand and drops what was read."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self.bytes, self.place = b"", 0
        self.offset = 0  # of the first byte in the window

    def grow(self) -> bool:
        """Double the window, which keeps repeated searches linear; False at the end of the stream."""
        parts, missing = [self.bytes], max(1, len(self.bytes))
        for block in self._blocks:
            parts.append(block)
            missing -= len(block)
            if missing <= 0:
                break
        self.bytes = b"".join(parts)
        return len(self.bytes) > len(parts[0])

    def move(self, place: int) -> None:
        self.place = place
        if place > len(self.bytes) // 2:
            self.bytes, self.offset, self.place = self.bytes[place:], self.offset + place, 0

    def search(self, pattern: re.Pattern[bytes], keep: int = 0) -> re.Match[bytes] | None:
        """The next match; drops text without a match, except the last ``keep`` bytes."""
        while not (match := pattern.search(self.bytes, self.place)):
            self.move(max(self.place, len(self.bytes) - keep))
            if not self.grow():
                return None
        return match

    def item(self, number: int, problem: str, end: int | None = None, value: Any = None) -> Item:
        """The bytes from here to ``end``, or an excerpt."""
        raw = self.bytes[self.place : self.place + EXCERPT_BYTES if end is None else end]
        return Item(number, self.offset + self.place, raw, problem, value)


def scan_array(blocks: Blocks, array_key: str | None = None, encoding: str = UTF8) -> Iterator[Item]:
    """Objects of a JSON array, or of the array under ``array_key`` of a JSON object."""
    window = Window(blocks_to_utf8(blocks, encoding))
    key = re.escape(json.dumps(array_key, ensure_ascii=False).encode()) if array_key else b"(?!)"
    opening = re.compile(rb"(?:\A(?:\xef\xbb\xbf)?|" + key + rb"\s*+:)\s*+\[")
    while not (match := opening.search(window.bytes)):
        if len(window.bytes) > RECORD_BYTES or not window.grow():
            if window.bytes:
                yield window.item(1, "not_a_json_array")
            return
    window.move(match.end())
    unfinished = 0
    for number in itertools.count(1):
        if not (match := window.search(_ITEM)):
            yield window.item(number, UNFINISHED)
            return
        window.move(match.start())
        if match[0] == b"]":
            return
        item = _next_object(window, number)
        yield item
        unfinished += item.problem in (UNFINISHED, TOO_LONG)
        if unfinished > MAX_UNFINISHED:
            window.move(window.place + len(item.raw))
            yield window.item(number + 1, GIVEN_UP)
            return
        if not item.problem:
            window.move(window.place + len(item.raw))
            continue
        window.move(window.place + 1)
        follows = _AFTER_VALUE if item.problem == NOT_AN_OBJECT else _AFTER_OBJECT
        if not (match := window.search(follows, EXCERPT_BYTES)):
            return
        window.move(match.end())


def _next_object(window: Window, number: int) -> Item:
    """The object that starts here, with a problem if it is unfinished or invalid."""
    if window.bytes[window.place : window.place + 1] != b"{":
        return window.item(number, NOT_AN_OBJECT)
    while (end := _object_end(window.bytes, window.place)) < 0:
        if len(window.bytes) - window.place > RECORD_BYTES:
            return window.item(number, TOO_LONG)
        if not window.grow():
            return window.item(number, UNFINISHED)
    try:
        return window.item(number, "", end, parse_json(window.bytes[window.place : end]))
    except UnreadableRecord as error:
        return window.item(number, str(error), end)


def _object_end(text: bytes, start: int) -> int:
    """The end of the object at ``start``; -1 if it is not in the window."""
    depth = 0
    for match in _TOKEN.finditer(text, start):
        token = match[0]
        if token == b'"':
            return -1
        depth += (token == b"{") - (token == b"}")
        if depth <= 0:
            return match.end() if token == b"}" else -1
    return -1


SCANNERS: dict[str, Callable[[Blocks, str | None, str], Iterator[Item]]] = {
    "lines": scan_lines,
    "text": scan_paragraphs,
    "docs": scan_docs,
    "array": scan_array,
}
