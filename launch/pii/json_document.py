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
from itertools import chain
from typing import NamedTuple

from corpus.pii.records import EVERYTHING, Paths
from corpus.reading import containers
from corpus.reading.containers import TOO_LONG, Unreadable
from corpus.reading.encoding import UNDECODED
from launch.pii.json_text import (
    TOKEN,
    UNDECODABLE,
    Walker,
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
        start, end = 0, self._scanned
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
        if self.has_value and not self.open:
            raise Unreadable(containers.BROKEN_JSON)  # a second value: these are JSON lines
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
    """A JSON document on its way through: its pieces are changed, or give the lines of what was found."""

    paths: Paths
    flat: bool
    records: int = 0
    keys: dict[str, None] = field(default_factory=dict)  # of the first record
    has_text: bool = False
    seen: bool = False
    outer: Walker = field(init=False)

    def __post_init__(self) -> None:
        self.outer = Walker(self.paths)

    def hide(self, piece: Piece, work: Hiding) -> str:
        """The piece without personal data; what stands around the records is one document.

        Raises:
            Unreadable: the piece cannot be read.
        """
        self.has_text = self.has_text or '"' in piece.raw
        if not piece.is_record:
            if UNDECODED.search(piece.raw):
                raise Unreadable(UNDECODABLE)
            return hide_in_text(piece.raw, self.outer, work, "0")
        walker = self._enter(piece)
        hidden = hide_in_record(piece.raw, walker, work, self.records - 1)
        self._leave(walker)
        return hidden

    def find(self, piece: Piece, work: Finding) -> str:
        """The JSON line of a record; what stands around the records has none."""
        self.has_text = self.has_text or '"' in piece.raw
        if not piece.is_record:
            for _ in self.outer.places(piece.raw):
                pass
            return ""
        walker = self._enter(piece)
        line, _ = find_in_record(piece.raw, walker, work, self.flat)
        self._leave(walker)
        return line + "\n"

    def _enter(self, piece: Piece) -> Walker:
        """Paths count from a record's own keys, or from the top of the document."""
        self.records += 1
        around = self.outer.stack[-1].paths if self.outer.stack else ()
        return Walker(tuple(dict.fromkeys((*self.paths, *around))))

    def _leave(self, walker: Walker) -> None:
        self.seen = self.seen or walker.seen
        if self.records == 1:
            self.keys = walker.keys

    @property
    def has_chosen(self) -> bool:
        """Whether a chosen field was there."""
        return self.seen or self.outer.seen or self.paths == EVERYTHING

    def check_end(self) -> None:
        """Raises: Unreadable where there was text, but no chosen field anywhere."""
        if self.has_text and not self.has_chosen:
            raise Unreadable(f"no_field: {', '.join(self.outer.keys | self.keys)}")


def whole_or_pieces(pieces: Iterable[Piece], paths: Paths) -> Iterator[Piece]:
    """One record where the document is an object that has chosen fields of its own, or no records; else its pieces.

    What stands around records is shown, too, as a record without them, where a field is chosen there.
    """
    held: list[Piece] = []
    size = 0
    rest = iter(pieces)
    for piece in rest:
        held.append(piece)
        size += len(piece.raw)
        if size > containers.RECORD_BYTES:  # too large for a record
            yield from chain(held, rest)
            return
    whole = "".join(piece.raw for piece in held)
    if not whole.lstrip().startswith("{"):
        yield from held
        return
    around = Walker(paths)
    for piece in held:
        if not piece.is_record:
            for _ in around.places(piece.raw):
                pass
    if paths == EVERYTHING and any(piece.is_record for piece in held):
        yield from held
        frame = [piece.raw for piece in held if not piece.is_record and (piece.raw.strip(", \t\r\n"))]
        yield Piece(True, "".join(frame))
    else:
        yield from [Piece(True, whole)] if around.seen or paths == EVERYTHING else held
