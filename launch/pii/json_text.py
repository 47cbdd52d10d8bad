"""JSON whose strings are changed where they stand: all else, long numbers and repeated keys too, stays as it is.

A record is walked token by token, without recursion; where it stands in a larger document, ``json_document`` says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from corpus.pii.records import EVERYTHING, Paths, below, escape_key
from corpus.reading.containers import NOT_AN_OBJECT, Unreadable, parse_json
from corpus.reading.encoding import UNDECODED
from launch.pii.work import Finding, Hiding, SpanRow, nfc

TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\],:]|[^\s{}\[\],:"]++|"', re.S)
_SURROGATE = re.compile("[\ud800-\udfff]")
UNDECODABLE = "undecodable"
NOT_TEXT = "text_is_not_a_string"
MAX_KEYS = 20  # as many are named, from no deeper


class Place(NamedTuple):
    """A chosen string literal at ``raw[start:end]``."""

    start: int
    end: int
    label: str


@dataclass(slots=True)
class _Frame:
    is_object: bool
    paths: Paths
    label: str
    key: str = ""
    inner: Paths = ()  # what is chosen under the key
    number: int = 0
    expects_key: bool = False


@dataclass(slots=True)
class Walker:
    """Finds the chosen strings of JSON text that may come in pieces; ``seen`` tells whether a chosen key was there."""

    paths: Paths
    stack: list[_Frame] = field(default_factory=list)
    seen: bool = False
    keys: dict[str, None] = field(default_factory=dict)  # the first there are, to be named where none was chosen
    spans_at: tuple[int, int] | None = None  # where the value of a top-level "spans" stands

    def places(self, raw: str) -> Iterator[Place]:
        """Chosen strings of the next piece, in order.

        Raises:
            Unreadable: a chosen key holds a number.
        """
        own = -1  # where the value of "spans" begins
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
                    yield Place(token.start(), token.end(), label)
            elif sign in "{[":
                self.stack.append(_Frame(sign == "{", paths, label, expects_key=sign == "{"))
            elif sign in "}]":
                self.stack.pop()
            elif sign == "," and top:
                top.number, top.expects_key = top.number + 1, top.is_object
            elif sign in "-0123456789" and top and top.is_object and () in paths and () not in top.paths:
                raise Unreadable(NOT_TEXT)
            if own >= 0 and len(self.stack) == 1 and sign not in ":,":
                self.spans_at, own = (own, token.end()), -1

    def _enter_key(self, frame: _Frame, key: str) -> None:
        frame.key, frame.inner, frame.expects_key = key, below(frame.paths, key), False
        self.seen = self.seen or () in frame.inner
        if len(self.keys) < MAX_KEYS and len(self.stack) <= MAX_KEYS:
            self.keys[".".join(frame.key for frame in self.stack if frame.is_object)] = None

    def _chosen(self) -> tuple[Paths, str]:
        if not self.stack:
            return self.paths, ""
        frame = self.stack[-1]
        return (frame.inner, frame.key) if frame.is_object else (frame.paths, frame.label)

    def pointer(self) -> str:
        """Where the string that was given last stands."""
        return "".join(f"/{escape_key(frame.key) if frame.is_object else frame.number}" for frame in self.stack)


def check_record(raw: str) -> dict[str, Any]:
    """The record as Python reads it.

    Raises:
        Unreadable: not decoded, not JSON, too deep, or no object.
    """
    if UNDECODED.search(raw):
        raise Unreadable(UNDECODABLE)
    value = parse_json(raw.encode("utf-8"))
    if not isinstance(value, dict):
        raise Unreadable(NOT_AN_OBJECT)
    return value


def hide_in_record(raw: str, walker: Walker, work: Hiding, position: int) -> str:
    """The record with the personal data of its chosen strings hidden; records with the same "id" are one document.

    Raises:
        Unreadable: it is no record.
    """
    document = str(check_record(raw).get("id", position))
    return hide_in_text(raw, walker, work, document)


def hide_in_text(raw: str, walker: Walker, work: Hiding, document: str) -> str:
    """The same for JSON text of which ``walker`` may have seen a part already."""
    return _changed(raw, walker.places(raw), lambda text, label: work.hidden(text, document, label))


def require_field(walker: Walker) -> None:
    """Raises: Unreadable naming the keys there are, where no chosen key was in the record just walked."""
    if not walker.seen and walker.paths != EVERYTHING:
        raise Unreadable(f"no_field: {', '.join(walker.keys)}")


def _changed(raw: str, places: Iterable[Place], change: Callable[[str, str], str]) -> str:
    pieces, position = [], 0
    for place in places:
        text = json.loads(raw[place.start : place.end], strict=False)
        new = change(text, place.label)
        if new != text:
            pieces += [raw[position : place.start], literal(new)]
            position = place.end
    return "".join([*pieces, raw[position:]])


def literal(value: Any) -> str:
    """A JSON value that UTF-8 can hold: a lone surrogate keeps its escape."""
    text = json.dumps(value, ensure_ascii=False)
    return _SURROGATE.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)


def find_in_record(raw: str, walker: Walker, work: Finding, flat: bool) -> tuple[str, bool]:
    """The record on one line, with "spans"; chosen strings are NFC, as spans count characters of that form.

    Args:
        flat: spans are a list, those of the one top-level string chosen; else an object by JSON pointer.

    Returns:
        the line without its end, and whether there are spans.

    Raises:
        Unreadable: it is no record.
    """
    record = check_record(raw)
    found: dict[str, list[SpanRow]] = {}

    def find(text: str, label: str) -> str:
        text = nfc(text)
        if spans := work.spans(text, label):
            found.setdefault(walker.pointer(), []).extend(work.shown(span) for span in spans)  # a key may stand twice
        return text

    shown = _changed(raw, walker.places(raw), find)
    at = walker.spans_at
    if "spans" in record:
        again = Walker(())
        list(again.places(shown))
        at = again.spans_at
    spans = literal([row for rows in found.values() for row in rows] if flat else found)
    return _with_spans(shown, spans, at), bool(found)


def _with_spans(raw: str, spans: str, at: tuple[int, int] | None) -> str:
    if at:
        raw = raw[: at[0]] + spans + raw[at[1] :]
    else:
        head = raw.rstrip().removesuffix("}").rstrip()
        raw = f'{head}{"" if head.endswith("{") else ", "}"spans": {spans}}}'
    return " ".join(line.strip() for line in raw.strip().splitlines()) if "\n" in raw else raw.strip()
