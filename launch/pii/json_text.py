"""Change strings in JSON text in place; everything else is unchanged, including long numbers and repeated keys.

```
{"version": 1, "data": [{"text": …}, {"text": …}]}
└─ around ────────────┘ └─ record ─┘ └─ record ─┘└┘
```
Text is processed token by token, without recursion. A document (an array of objects, or an object, possibly with lists
of objects) is processed record by record; the text around the records is processed in the same way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from corpus.reading import containers
from corpus.reading.containers import BROKEN_JSON, NOT_AN_OBJECT, TOO_LONG, UnreadableRecord, parse_json
from corpus.reading.encoding import UNDECODED
from launch.pii.streams import UNDECODABLE, Line, ReportProblem
from launch.pii.work import EVERYTHING, Finding, Hiding, Paths, RecordWork, Work, escape_key, paths_below

TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\],:]|[^\s{}\[\],:"]++|"', re.S)
SCALAR = re.compile(r"-?\d++(?:\.\d++)?(?:[eE][+-]?\d++)?|true|false|null|NaN|-?Infinity")
_SURROGATE = re.compile("[\ud800-\udfff]")
NOT_TEXT = "text_is_not_a_string"
MAX_KEYS = 20  # maximum number and depth of keys in messages


@dataclass(slots=True)
class _Frame:
    is_object: bool
    paths: Paths
    label: str
    key: str = ""
    inner: Paths = ()  # selected paths under the key
    number: int = 0
    expects_key: bool = False


@dataclass(slots=True)
class Walker:
    """Finds the selected strings of JSON text, which may come in pieces; ``seen``: a selected key was found."""

    paths: Paths
    stack: list[_Frame] = field(default_factory=list)
    seen: bool = False
    keys: dict[str, None] = field(default_factory=dict)  # the first keys, for messages
    spans_at: tuple[int, int] | None = None  # position of the value of a top-level "spans"

    def change(self, raw: str, change: Callable[[str, str], str]) -> str:
        """The next piece with ``change(text, label)`` applied to its selected strings.

        Raises:
            UnreadableRecord: the value of a selected key is a number.
        """
        pieces, position = [], 0
        for start, end, label in self._places(raw):
            text = json.loads(raw[start:end], strict=False)
            if (new := change(text, label)) != text:
                pieces += [raw[position:start], literal(new)]
                position = end
        return "".join([*pieces, raw[position:]])

    def pass_over(self, raw: str) -> None:
        """Read the next piece without a change."""
        for _ in self._places(raw):
            pass

    def _places(self, raw: str) -> Iterator[tuple[int, int, str]]:
        own = -1  # start of the value of "spans"
        for token in TOKEN.finditer(raw):
            sign, top = raw[token.start()], self.stack[-1] if self.stack else None
            if sign == '"' and top and top.expects_key:
                self._enter_key(top, json.loads(token[0], strict=False))
                continue
            if len(self.stack) == 1 and top and top.is_object and top.key == "spans" and sign not in ":,}" and own < 0:
                own = token.start()
            paths, label = self._chosen()
            if sign == '"':
                if () in paths:
                    yield token.start(), token.end(), label
            elif sign in "{[":
                self.stack.append(_Frame(sign == "{", paths, label, expects_key=sign == "{"))
            elif sign in "}]":
                self.stack.pop()
            elif sign == "," and top:
                top.number, top.expects_key = top.number + 1, top.is_object
            elif sign in "-0123456789" and top and top.is_object and () in paths and () not in top.paths:
                raise UnreadableRecord(NOT_TEXT)
            if own >= 0 and len(self.stack) == 1 and sign not in ":,":
                self.spans_at, own = (own, token.end()), -1

    def _enter_key(self, frame: _Frame, key: str) -> None:
        frame.key, frame.inner, frame.expects_key = key, paths_below(frame.paths, key), False
        self.seen = self.seen or () in frame.inner
        if len(self.keys) < MAX_KEYS and len(self.stack) <= MAX_KEYS:
            self.keys[".".join(frame.key for frame in self.stack if frame.is_object)] = None

    def _chosen(self) -> tuple[Paths, str]:
        if not self.stack:
            return self.paths, ""
        frame = self.stack[-1]
        return (frame.inner, frame.key) if frame.is_object else (frame.paths, frame.label)

    def pointer(self) -> str:
        """The JSON pointer of the current string."""
        return "".join(f"/{escape_key(frame.key) if frame.is_object else frame.number}" for frame in self.stack)


def literal(value: Any, default: Callable[[Any], str] | None = None) -> str:
    """A JSON value as text; lone surrogates stay escaped."""
    text = json.dumps(value, ensure_ascii=False, default=default)
    return _SURROGATE.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)


# --- records


def check_record(raw: str) -> dict[str, Any]:
    """Parse a record.

    Raises:
        UnreadableRecord: not decodable, not JSON, nested too deeply, or not an object.
    """
    if UNDECODED.search(raw):
        raise UnreadableRecord(UNDECODABLE)
    value = parse_json(raw.encode("utf-8"))
    if not isinstance(value, dict):
        raise UnreadableRecord(NOT_AN_OBJECT)
    return value


def change_record(raw: str, walker: Walker, work: Work, position: int, flat: bool = False) -> str:
    """The record without personal data in its selected strings, or on one line with "spans" (of NFC strings).

    Records with the same "id" are one document; without "id", each record is one.

    Args:
        flat: "spans" is a list for the one selected string; else an object by JSON pointer.

    Raises:
        UnreadableRecord: as ``check_record``.
    """
    record = check_record(raw)
    strings = RecordWork(work, str(record.get("id", position)))
    if isinstance(work, Hiding):  # a pointer takes time linear in its depth, which only spans need
        return walker.change(raw, lambda text, label: strings.change(text, label, ""))
    changed = walker.change(raw, lambda text, label: strings.change(text, label, walker.pointer()))
    return _with_spans(changed, literal(strings.found(flat)))


def _with_spans(raw: str, spans: str) -> str:
    walker = Walker(())
    walker.pass_over(raw)
    if walker.spans_at:
        start, end = walker.spans_at
        raw = raw[:start] + spans + raw[end:]
    else:
        head = raw.rstrip().removesuffix("}").rstrip()
        raw = f'{head}{"" if head.endswith("{") else ", "}"spans": {spans}}}'
    return " ".join(line.strip() for line in raw.strip().splitlines()) if "\n" in raw else raw.strip()


def change_lines(lines: Iterable[Line], paths: Paths, work: Work, flat: bool, report: ReportProblem) -> Iterator[str]:
    """JSON lines with one record each; empty lines are kept."""
    position = 0
    for line in lines:
        if not (line.text.strip() or line.problem):
            if isinstance(work, Hiding):
                yield line.text + line.end
            continue
        try:
            if line.problem:
                raise UnreadableRecord(line.problem)
            walker = Walker(paths)
            changed = change_record(line.text, walker, work, position, flat)
            if not walker.seen and paths != EVERYTHING:
                raise UnreadableRecord(f"no_field: {', '.join(walker.keys)}")
            yield changed + (line.end if isinstance(work, Hiding) else "\n")
        except UnreadableRecord as error:
            report(f"line {line.number}", str(error), line.text)
        position += 1


# --- documents


class Piece(NamedTuple):
    """Part of a document: a record, or text around records."""

    is_record: bool
    raw: str


def pieces_of(blocks: Iterable[str]) -> Iterator[Piece]:
    """Split a JSON document into pieces that join to the document. Records are the objects of its outermost lists.

    Raises:
        UnreadableRecord: not JSON, truncated, or a record above ``RECORD_BYTES``.
    """
    cutter = _Cutter()
    held, missing = [], 1
    for block in blocks:
        held.append(block)
        missing -= len(block)
        if missing <= 0:  # searched again only when doubled, so the time is linear
            yield from cutter.cut("".join(held))
            held, missing = [cutter.rest], len(cutter.rest)
            if missing > containers.RECORD_BYTES:
                raise UnreadableRecord(TOO_LONG)
    yield from cutter.cut("".join(held) + "\n")
    if cutter.rest.strip() or cutter.open or not cutter.has_value:
        raise UnreadableRecord(containers.UNFINISHED)


class _Cutter:
    def __init__(self) -> None:
        self.rest, self.has_value = "", False
        self.open: list[str] = []
        self._base = 0  # number of open brackets around the current record; 0 between records
        self._scanned = 0  # characters of the rest

    def cut(self, text: str) -> Iterator[Piece]:
        """The complete pieces; the remaining text is in ``rest``."""
        start, end = 0, self._scanned
        for token in TOKEN.finditer(text, self._scanned):
            sign = text[token.start()]
            if (token.end() == len(text) and sign not in "{}[],:") or token[0] == '"':
                break  # the token may continue
            if sign == "{" and self.open[-1:] == ["["] and not self._base:
                if text[start : token.start()]:
                    yield Piece(False, text[start : token.start()])
                start, self._base = token.start(), len(self.open)
            self._follow(sign, token[0])
            end = token.end()
            if self._base and len(self.open) == self._base:
                yield Piece(True, text[start:end])
                start, self._base = end, 0
        if not self._base and text[start:end]:
            yield Piece(False, text[start:end])
            start = end
        self.rest, self._scanned = text[start:], end - start

    def _follow(self, sign: str, token: str) -> None:
        if self.has_value and not self.open:
            raise UnreadableRecord(BROKEN_JSON)  # a second value: JSON lines
        self.has_value = True
        if sign in "{[":
            self.open.append(sign)
        elif sign in "}]":
            if not self.open or self.open.pop() != ("{" if sign == "}" else "["):
                raise UnreadableRecord(BROKEN_JSON)
        elif sign not in ',:"' and not SCALAR.fullmatch(token):
            raise UnreadableRecord(BROKEN_JSON)


def change_document(
    texts: Iterable[str], paths: Paths, work: Work, flat: bool, report: ReportProblem, *, waits: bool
) -> Iterator[str]:
    """Process a document piece by piece; text around its records is a separate document without a JSON line.

    Args:
        waits: yield nothing before a selected field was found.

    Raises:
        UnreadableRecord: not JSON, or there is text but no selected field.
    """
    finds, pieces, around = isinstance(work, Finding), pieces_of(texts), Walker(paths)
    keys: dict[str, None] = {}  # keys of the first record
    has_text, has_chosen, records, size = False, paths == EVERYTHING, 0, 0
    held: list[str] = []
    for piece in _whole_or_pieces(pieces, paths) if finds else pieces:
        has_text = has_text or '"' in piece.raw
        if piece.is_record:  # paths start at its keys or at the top of the document
            walker = Walker(tuple(dict.fromkeys((*paths, *(around.stack[-1].paths if around.stack else ())))))
            records += 1
            try:
                held.append(change_record(piece.raw, walker, work, records - 1, flat) + "\n" * finds)
                has_chosen, keys = has_chosen or walker.seen, walker.keys if records == 1 else keys
            except UnreadableRecord as error:
                report(f"item {records}", str(error), piece.raw)
                held.append("" if finds else "null")  # a placeholder keeps the commas valid
        else:
            held.append(_change_around(piece.raw, around, work))
            has_chosen = has_chosen or around.seen
        size += len(held[-1])
        if has_chosen or not waits or size > containers.RECORD_BYTES:
            if waits and has_text and not has_chosen:
                break
            yield from held  # without a selected field: only numbers so far
            held, size = [], 0
    if has_text and not has_chosen:
        raise UnreadableRecord(f"no_field: {', '.join(around.keys | keys)}")
    yield from held


def _change_around(raw: str, around: Walker, work: Work) -> str:
    if isinstance(work, Finding):
        around.pass_over(raw)
        return ""
    if UNDECODED.search(raw):
        raise UnreadableRecord(UNDECODABLE)
    return around.change(raw, lambda text, label: work.hidden(text, "0", label))


def _whole_or_pieces(pieces: Iterator[Piece], paths: Paths) -> Iterator[Piece]:
    """One record if the document is an object with selected fields or without records; else its pieces.

    Text around records becomes a record without them if it has a selected field.
    """
    held: list[Piece] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece.raw)
        if size > containers.RECORD_BYTES:  # too large for one record
            yield from chain(held, pieces)
            return
    whole = "".join(piece.raw for piece in held)
    outside = [piece.raw for piece in held if not piece.is_record]
    around = Walker(paths)
    for raw in outside if whole.lstrip().startswith("{") else ():
        around.pass_over(raw)
    if not whole.lstrip().startswith("{"):
        yield from held
    elif paths == EVERYTHING and len(outside) < len(held):
        yield from held
        yield Piece(True, "".join(raw for raw in outside if raw.strip(", \t\r\n")))
    else:
        yield from [Piece(True, whole)] if around.seen or paths == EVERYTHING else held
