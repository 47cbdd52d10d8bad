"""Change strings in JSON text in place; everything else is unchanged, including long numbers and repeated keys.

```
{"version": 1, "data": [{"text": …}, {"text": …}]}
└─ around ────────────┘ └─ record ─┘ └─ record ─┘└┘
```
A document (an array of objects, or an object, possibly with lists of objects) is read whole, so larger data needs JSON
Lines. Its records are processed one by one, and the text around them in the same way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from corpus.documents.encoding import UNDECODED
from corpus.reading.containers import UnreadableRecord, parse_json, parse_object
from launch.pii.streams import UNDECODABLE, ReportProblem, TextLine
from launch.pii.work import EVERYTHING, Finding, Hiding, Paths, RecordWork, Work, escape_key, paths_below

TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\],:]|[^\s{}\[\],:"]++|"', re.S)
_SURROGATE = re.compile("[\ud800-\udfff]")
NOT_TEXT = "text_is_not_a_string"
DOCUMENT_CHARS = 256 << 20
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

    def change(self, raw: str, change: Callable[[str, str], str] = lambda text, label: text) -> str:
        """The next piece with ``change(text, label)`` applied to its selected strings.

        ``UnreadableRecord`` if the value of a selected key is a number.
        """
        pieces, position = [], 0
        for start, end, label in self._places(raw):
            text = json.loads(raw[start:end], strict=False)
            if (new := change(text, label)) != text:
                pieces += [raw[position:start], literal(new)]
                position = end
        return "".join([*pieces, raw[position:]])

    def _places(self, raw: str) -> Iterator[tuple[int, int, str]]:
        for token in TOKEN.finditer(raw):
            sign, top = raw[token.start()], self.stack[-1] if self.stack else None
            if sign == '"' and top and top.expects_key:
                self._enter_key(top, json.loads(token[0], strict=False))
                continue
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
    """The parsed record; ``UnreadableRecord`` if it is not decodable, no JSON, nested too deeply, or no object."""
    if UNDECODED.search(raw):
        raise UnreadableRecord(UNDECODABLE)
    return parse_object(raw.encode("utf-8"))


def change_record(raw: str, walker: Walker, work: Work, position: int) -> str:
    """The record without personal data in its selected strings, or on one line with "spans" (of NFC strings).

    Records with the same "id" are one document; without "id", each record is one. Raises as ``check_record``.
    """
    record = check_record(raw)
    strings = RecordWork(work, str(record.get("id", position))).learn(record)
    if isinstance(work, Hiding) and not strings.parts:  # a pointer takes time linear in its depth
        return walker.change(raw, lambda text, label: strings.change(text, label, ""))
    changed = walker.change(raw, lambda text, label: strings.change(text, label, walker.pointer()))
    if isinstance(work, Hiding):
        return changed
    if "spans" in record:
        return literal(parse_json(changed.encode("utf-8")) | {"spans": strings.format_spans()}, default=str)
    head = " ".join(line.strip() for line in changed.strip().removesuffix("}").split("\n")).rstrip()
    return f'{head}{"" if head.endswith("{") else ", "}"spans": {literal(strings.format_spans())}}}'


def change_lines(lines: Iterable[TextLine], paths: Paths, work: Work, report: ReportProblem) -> Iterator[str]:
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
            changed = change_record(line.text, walker, work, position)
            if not walker.seen and paths != EVERYTHING:
                raise UnreadableRecord(f"no_field: {', '.join(walker.keys)}")
            yield changed + (line.end if isinstance(work, Hiding) else "\n")
        except UnreadableRecord as error:
            report(f"line {line.number}", str(error), line.text)
        position += 1


# --- documents


def read_document(blocks: Iterable[str]) -> tuple[str, Any]:
    """A whole JSON document, as text and parsed. ``UnreadableRecord`` for text that is too long or no JSON."""
    read, size = [], 0
    for block in blocks:
        read.append(block)
        size += len(block)
        if size > DOCUMENT_CHARS:
            raise UnreadableRecord("document_too_long")
    text = "".join(read)
    return text, parse_json(UNDECODED.sub("?", text).encode("utf-8"))


def pieces_of(text: str) -> Iterator[tuple[bool, str]]:
    """Split a document at its records, the objects of its outermost lists: (is it a record, text)."""
    start, depth = 0, 0  # depth: number of open brackets around the current record
    opened: list[str] = []
    for token in TOKEN.finditer(text):
        sign = text[token.start()]
        if sign == "{" and opened[-1:] == ["["] and not depth:
            yield False, text[start : token.start()]
            start, depth = token.start(), len(opened)
        if sign in "{[":
            opened.append(sign)
        elif sign in "}]":
            opened.pop()
            if depth and len(opened) == depth:
                yield True, text[start : token.end()]
                start, depth = token.end(), 0
    yield False, text[start:]


def change_document(blocks: Iterable[str], paths: Paths, work: Work, report: ReportProblem) -> Iterator[str]:
    """Process a document record by record; text around its records is a separate document without a JSON line.

    ``UnreadableRecord`` if it is no JSON or too long, or if there is text but no selected field.
    """
    finds, around = isinstance(work, Finding), Walker(paths)
    text, value = read_document(blocks)
    strings = RecordWork(work, "0")  # of the text around the records
    if not finds and isinstance(value, dict | list):
        strings.learn(value)
    pieces = _whole_or_pieces(text, paths) if finds else list(pieces_of(text))
    keys: dict[str, None] = {}  # keys of the first record
    has_chosen, records, out = paths == EVERYTHING, 0, list[str]()
    for is_record, raw in pieces:
        if not is_record:
            out.append(_change_around(raw, around, strings))
            has_chosen = has_chosen or around.seen
            continue
        # paths start at the keys of a record or at the top of the document
        walker = Walker(tuple(dict.fromkeys((*paths, *(around.stack[-1].paths if around.stack else ())))))
        records += 1
        try:
            out.append(change_record(raw, walker, work, records - 1) + "\n" * finds)
            has_chosen, keys = has_chosen or walker.seen, walker.keys if records == 1 else keys
        except UnreadableRecord as error:
            report(f"item {records}", str(error), raw)
            out.append("" if finds else "null")  # a placeholder keeps the commas valid
    if '"' in text and not has_chosen:
        raise UnreadableRecord(f"no_field: {', '.join(around.keys | keys)}")
    yield from out


def _change_around(raw: str, around: Walker, strings: RecordWork) -> str:
    if isinstance(strings.work, Finding):
        around.change(raw)
        return ""
    if UNDECODED.search(raw):
        raise UnreadableRecord(UNDECODABLE)
    return around.change(raw, lambda text, label: strings.change(text, label, around.pointer()))


def _whole_or_pieces(text: str, paths: Paths) -> list[tuple[bool, str]]:
    """One record if the document is an object with a selected field outside its records; else its pieces."""
    pieces, around = list(pieces_of(text)), Walker(paths)
    for is_record, raw in pieces:
        if not is_record:
            around.change(raw)
    is_record = text.lstrip().startswith("{") and (around.seen or paths == EVERYTHING)
    return [(True, text)] if is_record else pieces
