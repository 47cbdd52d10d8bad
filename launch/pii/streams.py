"""Where records come from and where they go: files packed or not, standard input and output, and what is set aside.

An output file appears under its name only when it is whole. Output is UTF-8, whatever the terminal or the locale says.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import pyarrow as pa

from corpus.documents.atomic_files import PARTIAL_SUFFIX, atomic_file
from corpus.documents.errors import BadInput
from corpus.reading import containers
from corpus.reading.encoding import UNDECODED
from corpus.reading.files import PACKINGS, file_format, read_blocks, unpack

STDIN = "standard input"
UNDECODABLE = "undecodable"
_PACK: dict[str, Callable[[Any], Any]] = {
    "": nullcontext,
    # neither name nor time, so that equal text gives equal bytes
    ".gz": lambda file: gzip.GzipFile("", "wb", fileobj=file, mtime=0),
    ".zst": lambda file: pa.CompressedOutputStream(pa.PythonFile(file, mode="w"), "zstd"),
    ".xz": lambda file: lzma.LZMAFile(file, "wb"),  # noqa: SIM115
    ".bz2": lambda file: bz2.BZ2File(file, "wb"),
}
_SENTENCES = {
    UNDECODABLE: "not {encoding}; give its --encoding, such as cp949, or convert the file first",
    "broken_json": "not JSON; a .jsonl file holds one object a line (other kinds: --format)",
    "unfinished_record": "not JSON: it ends in the middle",
    "json_too_deep": "JSON nested too deep to read; flatten it first",
    "json_in_text": "line {detail} is a JSON object, not plain text; "
    "give --format jsonl (or text, to take it as it is)",
    "not_an_object": "expected a JSON object",
    "no_field": "no field of those asked for (there are: {detail}); choose with --fields, or --all-fields",
    "text_is_not_a_string": "a chosen field holds a number, expected a string; choose others with --fields",
    "open_quote": "a quote that opens in this row is never closed; close it, or read the file with --format text",
    "record_too_long": "longer than {megabytes} MiB; divide it first, or close the quote that never ends",
}
Meet = Callable[[str, str, str], None]
"""Deals with a record that cannot be read: its place (line, item or row), the reason, what it holds."""


class Problems:
    """What is done about records that cannot be read: the first stops the run, or all are set aside and counted.

    ``name`` and ``encoding`` are of the file that is being read. As a context: the file of what was set aside appears
    at the end, where nothing was raised.
    """

    def __init__(self, stops: bool, aside: Path | None) -> None:
        self.name, self.encoding = "", "utf-8"
        self._stops, self._aside = stops, aside
        self._counts: Counter[str] = Counter()
        self._rows: IO[str] | None = None

    def meet(self, place: str, reason: str, raw: str) -> None:
        """Deal with one record.

        Raises:
            BadInput: with ``--on-error stop``; the message never holds what the record says.
        """
        if self._stops:
            raise BadInput(f"{self.name}, {place}: {explain(reason, self.encoding)} (or --on-error skip)")
        kind = reason.partition(": ")[0]
        self._counts[kind] += 1
        if self._aside:
            self._rows = self._rows or _open_private(_partial(self._aside))
            row = {"file": self.name, "place": place, "reason": kind, "raw": raw}
            self._rows.write(json.dumps(row, ensure_ascii=True) + "\n")

    def __enter__(self) -> Problems:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if self._rows and self._aside:
            self._rows.close()
            if error:
                _partial(self._aside).unlink(missing_ok=True)
            else:
                _partial(self._aside).replace(self._aside)
        if self._counts and not error:
            reasons = ", ".join(f"{reason} {count:,}" for reason, count in sorted(self._counts.items()))
            where = f"; they are kept in {self._aside}, which holds raw text" if self._aside else ""
            tell(f"records that could not be read were left out: {self._counts.total():,} ({reasons}){where}")


def explain(reason: str, encoding: str = "utf-8") -> str:
    """A sentence for the reason of an ``Unreadable``, such as "no_field: title, body"."""
    kind, _, detail = reason.partition(": ")
    if kind == "no_field" and not detail:
        return "no field of those asked for, as there are no keys; --all-fields takes every string"
    text = _SENTENCES.get(kind, kind.replace("_", " "))
    return text.format(encoding=encoding.upper(), megabytes=containers.RECORD_BYTES >> 20, detail=detail)


def tell(message: str) -> None:
    """A line for the user, beside the data."""
    print(f"malmoi: {message}", file=sys.stderr)


def source_blocks(path: Path | None) -> Iterator[bytes]:
    """Bytes of a file, unpacked, or of standard input as they come.

    Raises:
        BadInput: standard input is closed, packed, or Parquet, which needs a file.
    """
    if path is not None:
        packing = "" if file_format(path).packing else _packing_of(path)
        if not packing:
            yield from read_blocks(path)
            return
        with path.open("rb") as file:
            yield from unpack(file, packing, str(path))
        return
    if sys.stdin is None:
        raise BadInput(f"{STDIN} is closed; give a file, or text through a pipe")
    stdin = cast(Any, sys.stdin.buffer)
    block = stdin.read1(containers.PARAGRAPH_BYTES)
    for suffix, magic in (*PACKINGS.items(), (".parquet", b"PAR1")):
        if block.startswith(magic):
            raise BadInput(f"{STDIN} is a {suffix} file; give it as a file, or unpack it first")
    while block:
        yield block
        block = stdin.read1(containers.PARAGRAPH_BYTES)


def _packing_of(path: Path) -> str:
    """The packing that the first bytes of a file tell; empty for none."""
    with path.open("rb") as file:
        head = file.read(8)
    return next((suffix for suffix, magic in PACKINGS.items() if head.startswith(magic)), "")


@contextmanager
def open_output(path: Path | None) -> Iterator[IO[bytes]]:
    """Standard output, or a file that appears when it is whole, packed as its name says.

    Devices and pipes are written to as they are.
    """
    if path is None:
        if sys.stdout is None:
            raise BadInput("standard output is closed; give an OUTPUT")
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    elif path.exists() and not path.is_file():
        with path.open("wb") as device:
            yield device
    else:
        with (
            atomic_file(path) as temporary,
            temporary.open("wb") as file,
            _PACK[file_format(path).packing](file) as out,
        ):
            yield out


def _partial(path: Path) -> Path:
    return path.with_name(path.name + PARTIAL_SUFFIX)


def _open_private(path: Path) -> IO[str]:
    """A new file that only its owner can read: raw text is raw personal data."""
    path.unlink(missing_ok=True)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8")


class Line(NamedTuple):
    """``problem`` where it is too long or could not be decoded; of a too long one ``text`` is the beginning."""

    number: int
    text: str
    end: str  # "\n", "\r\n" or "" at the end of the text
    problem: str = ""


def lines_of(blocks: Iterator[str]) -> Iterator[Line]:
    """Lines of a text that comes in blocks."""
    number, size = 1, 0
    parts: list[str] = []
    for block in blocks:
        *ended, rest = block.split("\n")
        for piece in ended:
            parts.append(piece[: max(0, containers.RECORD_BYTES - size)])
            yield _line(number, "".join(parts), "\n", size + len(piece))
            number, size = number + 1, 0
            parts.clear()
        parts.append(rest[: max(0, containers.RECORD_BYTES - size)])
        size += len(rest)
    if size:
        yield _line(number, "".join(parts), "", size)


def _line(number: int, text: str, end: str, size: int) -> Line:
    if size > containers.RECORD_BYTES:
        return Line(number, text[: containers.EXCERPT_BYTES], end, containers.TOO_LONG)
    if end and text.endswith("\r"):
        text, end = text[:-1], "\r\n"
    return Line(number, text, end, UNDECODABLE if UNDECODED.search(text) else "")
