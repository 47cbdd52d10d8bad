"""JSON documents as they stream by: an array of objects, an object, or an object that holds lists of objects.

```
{"version": 1, "data": [{"text": …}, {"text": …}]}
└─ around ────────────┘ └─ record ─┘ └─ record ─┘└┘
```
Memory holds one record. What stands around the records is walked in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from corpus.pii.records import EVERYTHING, Paths
from corpus.reading import containers
from corpus.reading.containers import TOO_LONG, Unreadable
from corpus.reading.encoding import UNDECODED
from launch.pii.json_text import (
    TOKEN,
    UNDECODABLE,
    Walker,
    check_record,
    find_in_record,
    hide_in_record,
    hide_in_text,
)
from launch.pii.work import Finding, Hiding

SCALAR = re.compile(r"-?\d++(?:\.\d++)?(?:[eE][+-]?\d++)?|true|false|null|NaN|-?Infinity")


class Piece(NamedTuple):
    """Part of a document: a record, or what stands around records."""

    is_record: bool
    raw: str


def pieces_of(blocks: Iterable[str]) -> Iterator[Piece]:
    """A JSON document taken apart: joined, the pieces are the document. Records are objects of its outermost lists.

    Raises:
        Unreadable: it is not JSON, ends too early, or holds a record above ``RECORD_BYTES``.
    """
    cutter = _Cutter()
    held, wanted = [], 1
    for block in blocks:
        held.append(block)
        wanted -= len(block)
        if wanted <= 0:  # looked at again only when it has doubled, so the time stays linear
            yield from cutter.cut("".join(held))
            held, wanted = [cutter.rest], len(cutter.rest)
            if wanted > containers.RECORD_BYTES:
                raise Unreadable(TOO_LONG)
    yield from cutter.cut("".join(held) + "\n")
    if cutter.rest.strip() or cutter.open or not cutter.has_value:
        raise Unreadable(containers.UNFINISHED)


class _Cutter:
    def __init__(self) -> None:
        self.rest, self.has_value = "", False
        self.open: list[str] = []
        self._base = 0  # open brackets around the record that is being read; 0 between records
        self._scanned = 0  # of the rest

    def cut(self, text: str) -> Iterator[Piece]:
        """Pieces that are complete; what is not stays in ``rest``."""
        start, end = 0, 0
        for token in TOKEN.finditer(text, self._scanned):
            sign = text[token.start()]
            if (token.end() == len(text) and sign not in "{}[],:") or token[0] == '"':
                break  # more of it may follow
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
        self.has_value = True
        if sign in "{[":
            self.open.append(sign)
        elif sign in "}]":
            if not self.open or self.open.pop() != ("{" if sign == "}" else "["):
                raise Unreadable(containers.BROKEN_JSON)
        elif sign not in ',:"' and not SCALAR.fullmatch(token):
            raise Unreadable(containers.BROKEN_JSON)


@dataclass(slots=True)
class Document:
    """A JSON document on its way through: its pieces are changed, or give the lines of what was found.

    What stands around the records is a record of its own; it is shown where it has spans or is all there is.
    """

    paths: Paths
    work: Finding | Hiding
    flat: bool
    records: int = 0
    seen: bool = False
    keys: str = "none"
    outer: Walker = field(init=False)
    around: list[str] = field(default_factory=list)
    size: int = 0

    def __post_init__(self) -> None:
        self.outer = Walker(self.paths)

    def change(self, piece: Piece) -> str:
        """The piece without personal data, or the JSON line of a record.

        Raises:
            Unreadable: the piece cannot be read.
        """
        if not piece.is_record:
            return self._change_around(piece.raw)
        self.records += 1
        walker = Walker(tuple(dict.fromkeys((*self.paths, *self.outer.stack[-1].paths))))
        if isinstance(self.work, Finding):
            changed = find_in_record(piece.raw, walker, self.work, self.flat)[0] + "\n"
        else:
            changed = hide_in_record(piece.raw, walker, self.work, self.records - 1)
        self.seen = self.seen or walker.seen
        if self.records == 1:
            self.keys = ", ".join(list(check_record(piece.raw))[:20])
        return changed

    def _change_around(self, raw: str) -> str:
        if UNDECODED in raw:
            raise Unreadable(UNDECODABLE)
        if isinstance(self.work, Hiding):
            return hide_in_text(raw, self.outer, self.work, "0")
        for _ in self.outer.places(raw):
            pass
        if not self.records or raw.strip(", \t\r\n"):
            self.around.append(raw)
            self.size += len(raw)
        if self.size > containers.RECORD_BYTES:
            raise Unreadable(TOO_LONG)
        return ""

    def end(self) -> str:
        """What is left to write at the end.

        Raises:
            Unreadable: no chosen field was anywhere.
        """
        line, found = "", False
        around = "".join(self.around)
        if around.lstrip().startswith("{") and isinstance(self.work, Finding):
            walker = Walker(self.paths)
            line, found = find_in_record(around, walker, self.work, self.flat)
        if not self.seen and not self.outer.seen and self.paths != EVERYTHING:
            raise Unreadable(f"no_field: {self.keys}")
        return line + "\n" if line and (found or not self.records) else ""
