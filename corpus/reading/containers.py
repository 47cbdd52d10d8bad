"""Cut a stream of bytes into raw records: lines, paragraphs of a text file, ``<doc>`` blocks, items of a JSON array.

Memory holds one record: of a longer one than ``RECORD_BYTES`` only the head is kept. A record that is damaged costs
itself: the next line, block or item is read as if nothing had been. Numbers and offsets count from the start of the
stream. Scanners of lines take the encoding of the lines, and give them as UTF-8.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, NamedTuple

from corpus.reading.encoding import UTF8, blocks_to_utf8, decodes, line_to_utf8

RECORD_BYTES = 32 << 20
EXCERPT_BYTES = 400
MAX_UNFINISHED = 64  # each costs a look at all that follows; the rest of an array with more is given up
PARAGRAPH_BYTES = 4 << 20  # a .txt file without blank lines must not become one document of gigabytes
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

TOO_LONG = "record_too_long"
BROKEN_JSON = "broken_json"
UNFINISHED = "unfinished_record"
GIVEN_UP = "rest_of_the_array"
INVALID_UTF8 = "invalid_utf8"
NOT_AN_OBJECT = "not_an_object"
TOO_DEEP = "json_too_deep"
INT_DIGITS = 4_300  # longer numbers are valid JSON, but turning them into int takes more than linear time

Blocks = Iterator[bytes]


class Item(NamedTuple):
    """A raw record: ``number`` is its line (of an array: its place), from 1; ``problem`` says why it is unreadable."""

    number: int
    offset: int
    raw: bytes
    problem: str = ""
    value: Any = None  # items of an array are parsed here: parsing tells whether they end where they seem to


class Unreadable(Exception):
    """A record cannot be read; the message is the reason it is counted under."""


_decode_json = json.JSONDecoder(parse_int=lambda digits: (int if len(digits) <= INT_DIGITS else Decimal)(digits)).decode


def parse_json(raw: bytes) -> Any:
    """A JSON value; integers of more than ``INT_DIGITS`` digits become ``Decimal``.

    Raises:
        Unreadable: not UTF-8, not JSON, or nested too deep for Python (about 1,000 levels).
    """
    try:
        return _decode_json(raw.decode("utf-8"))
    except UnicodeDecodeError:
        raise Unreadable(INVALID_UTF8) from None
    except RecursionError:
        raise Unreadable(TOO_DEEP) from None
    except ValueError:
        raise Unreadable(BROKEN_JSON) from None


def scan_lines(blocks: Blocks, array_key: str | None = None, encoding: str = UTF8) -> Iterator[Item]:
    """Lines without their ends, empty ones too."""
    parts: list[bytes] = []
    number, offset, size = 1, 0, 0
    for block in blocks:
        *ended, rest = block.split(b"\n")
        for piece in ended:
            _add(parts, piece, size)
            size += len(piece)
            yield _line(number, offset, parts, size, encoding)
            number, offset, size = number + 1, offset + size + 1, 0
            parts.clear()
        _add(parts, rest, size)
        size += len(rest)
    if size:
        yield _line(number, offset, parts, size, encoding)


def _add(parts: list[bytes], piece: bytes, size: int) -> None:
    if size + len(piece) <= RECORD_BYTES:
        parts.append(piece)
    elif not parts:
        parts.append(piece[:EXCERPT_BYTES])


def _line(number: int, offset: int, parts: list[bytes], size: int, encoding: str) -> Item:
    raw = line_to_utf8(parts[0] if len(parts) == 1 else b"".join(parts), encoding)
    if size > RECORD_BYTES:
        return Item(number, offset, raw[:EXCERPT_BYTES], TOO_LONG)
    raw = raw.removesuffix(b"\r")
    return Item(number, offset, raw.removeprefix(BYTE_ORDER_MARK) if number == 1 else raw)


def scan_paragraphs(blocks: Blocks, array_key: str | None = None, encoding: str = UTF8) -> Iterator[Item]:
    """Documents of plain text, their lines joined by line ends: a blank line stands between two of them.

    A line that is not UTF-8 or too long is an item of its own; the document goes on without it.
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
    """Blocks ``<doc id="…" …>`` to ``</doc>``, as WikiExtractor writes them; raw is all but the closing line."""
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
_AFTER_OBJECT = re.compile(rb"\}\s*+,\s*+(?=\{)")
_AFTER_VALUE = re.compile(rb",\s*+(?=\{)")
_BETWEEN = re.compile(rb"[\s,]*+")


class _Window:
    """The part of a stream that is looked at: grows on demand, forgets what is done with."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self.bytes = b""
        self.offset = 0  # of the first byte held

    def grow(self) -> bool:
        """Take in about as much again, so that looking again stays linear; False at the end of the stream."""
        parts, wanted = [self.bytes], max(1, len(self.bytes))
        for block in self._blocks:
            parts.append(block)
            wanted -= len(block)
            if wanted <= 0:
                break
        grown = b"".join(parts)
        has_grown = len(grown) > len(self.bytes)
        self.bytes = grown
        return has_grown

    def forget(self, count: int) -> None:
        self.bytes = self.bytes[count:]
        self.offset += count


def scan_array(blocks: Blocks, array_key: str | None = None, encoding: str = UTF8) -> Iterator[Item]:
    """Objects of a JSON array, of the one under ``array_key`` where the file is an object itself."""
    window = _Window(blocks_to_utf8(blocks, encoding))
    if not _open_array(window, array_key):
        if head := window.bytes[:EXCERPT_BYTES]:
            yield Item(1, 0, head, "not_a_json_array")
        return
    number, position, unfinished = 1, 0, 0
    while (position := _skip_between(window, position)) >= 0:
        item = _next_object(window, position, number)
        yield item
        number += 1
        position = item.offset - window.offset + len(item.raw)
        unfinished += item.problem in (UNFINISHED, TOO_LONG)
        if unfinished > MAX_UNFINISHED:
            yield Item(number, window.offset + position, window.bytes[position : position + EXCERPT_BYTES], GIVEN_UP)
            return
        if item.problem:
            follows = _AFTER_VALUE if item.problem == NOT_AN_OBJECT else _AFTER_OBJECT
            position = _next_start(window, item.offset - window.offset, follows)
            if position < 0:
                return
        if position > len(window.bytes) // 2:
            window.forget(position)
            position = 0
    if not window.bytes:
        yield Item(number, window.offset, b"", UNFINISHED)


def _open_array(window: _Window, array_key: str | None) -> bool:
    """Move past the bracket that opens the array."""
    opening = re.compile(rb"(?:\xef\xbb\xbf)?\s*+\[")
    key = re.compile(re.escape(json.dumps(array_key, ensure_ascii=False).encode()) + rb"\s*+:\s*+\[")
    while True:
        match = opening.match(window.bytes) or (key.search(window.bytes) if array_key else None)
        if match:
            window.forget(match.end())
            return True
        if len(window.bytes) > RECORD_BYTES or not window.grow():
            return False


def _skip_between(window: _Window, position: int) -> int:
    """Where the next item begins; -1 at the bracket that closes the array, or at the end of the stream."""
    while True:
        match = _BETWEEN.match(window.bytes, position)
        assert match, "the pattern takes nothing, too"
        if match.end() < len(window.bytes):
            return -1 if window.bytes[match.end() : match.end() + 1] == b"]" else match.end()
        window.forget(match.end())
        position = 0
        if not window.grow():
            return -1


def _next_object(window: _Window, start: int, number: int) -> Item:
    """The object that begins at ``start``, with its problem where it does not end or does not parse."""
    offset = window.offset + start
    if window.bytes[start : start + 1] != b"{":
        return Item(number, offset, window.bytes[start : start + EXCERPT_BYTES], NOT_AN_OBJECT)
    while (end := _object_end(window.bytes, start)) < 0:
        if len(window.bytes) - start > RECORD_BYTES:
            return Item(number, offset, window.bytes[start : start + EXCERPT_BYTES], TOO_LONG)
        if not window.grow():
            return Item(number, offset, window.bytes[start : start + EXCERPT_BYTES], UNFINISHED)
    raw = window.bytes[start:end]
    try:
        return Item(number, offset, raw, value=parse_json(raw))
    except Unreadable as error:
        return Item(number, offset, raw, str(error))


def _object_end(text: bytes, start: int) -> int:
    """The end of the brace that closes the object at ``start``; -1 where it is not there yet."""
    depth = 0
    for match in _TOKEN.finditer(text, start):
        token = match[0]
        if token == b'"':
            return -1
        depth += (token == b"{") - (token == b"}")
        if depth <= 0:
            return match.end() if token == b"}" else -1
    return -1


def _next_start(window: _Window, start: int, follows: re.Pattern[bytes]) -> int:
    """Where the object after a damaged one begins; -1 where there is none."""
    start += 1
    while not (match := follows.search(window.bytes, start)):
        start = max(start, len(window.bytes) - EXCERPT_BYTES)
        window.forget(start)
        start = 0
        if not window.grow():
            return -1
    return match.end()


SCANNERS: dict[str, Callable[[Blocks, str | None, str], Iterator[Item]]] = {
    "lines": scan_lines,
    "text": scan_paragraphs,
    "docs": scan_docs,
    "array": scan_array,
}
