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
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple, NoReturn, cast

import pyarrow as pa

from corpus.documents.errors import BadInput
from corpus.documents.whole_files import PARTIAL, whole_file
from corpus.reading import containers
from corpus.reading.encoding import UNDECODED
from corpus.reading.files import PACKINGS, format_of, read_blocks, unpack

STDIN = "standard input"
SUFFIX_OF_SKIPPED = ".skipped.jsonl"
_PACK: dict[str, Callable[..., Any]] = {
    ".gz": partial(gzip.GzipFile, "", mtime=0),  # neither name nor time, so that equal text gives equal bytes
    ".zst": lambda file, mode: pa.CompressedOutputStream(pa.PythonFile(file, mode="w"), "zstd"),
    ".xz": lzma.LZMAFile,
    ".bz2": bz2.BZ2File,
}
_SENTENCES = {
    "undecodable": "not {encoding}; give its --encoding, such as cp949, or convert the file first",
    "broken_json": "not JSON; a .jsonl file holds one object a line (other kinds: --format)",
    "unfinished_record": "not JSON: it ends in the middle",
    "json_too_deep": "JSON nested too deep to read; flatten it first",
    "not_an_object": "expected a JSON object",
    "text_is_not_a_string": "a chosen field holds a number, expected a string; choose others with --fields",
    "open_quote": "a quote that opens in this row is never closed; close it, or read the file with --format text",
    "record_too_long": "longer than {megabytes} MiB; divide it first, or close the quote that never ends",
}


class Problems:
    """What is done about records that cannot be read: the first stops the run, or all are set aside and counted."""

    def __init__(self, stops: bool, aside: Path | None) -> None:
        self.stops, self.aside = stops, aside
        self.counts: Counter[str] = Counter()
        self._rows: IO[str] | None = None

    def meet(self, name: str, place: str, reason: str, raw: str, encoding: str = "utf-8") -> None:
        """Deal with one record; ``place`` is its line, item or row.

        Raises:
            BadInput: with ``--on-error stop``; the message never holds what the record says.
        """
        kind, _, detail = reason.partition(": ")
        if self.stops:
            raise BadInput(f"{name}, {place}: {_sentence(kind, detail, encoding)} (or --on-error skip)")
        self.counts[kind] += 1
        if self.aside:
            self._rows = self._rows or _open_private(_partial(self.aside))
            row = {"file": name, "place": place, "reason": kind, "raw": raw}
            self._rows.write(json.dumps(row, ensure_ascii=True) + "\n")

    def finish(self) -> None:
        """Let the file of what was set aside appear, and say how much that is."""
        if self._rows and self.aside:
            self._rows.close()
            _partial(self.aside).replace(self.aside)
        if self.counts:
            reasons = ", ".join(f"{reason} {count:,}" for reason, count in sorted(self.counts.items()))
            where = f"; they are kept in {self.aside}, which holds raw text" if self.aside else ""
            tell(f"records that could not be read were left out: {self.counts.total():,} ({reasons}){where}")

    def give_up(self) -> None:
        """Leave nothing where the run failed."""
        if self._rows and self.aside:
            self._rows.close()
            _partial(self.aside).unlink(missing_ok=True)


def refuse(name: str, reason: str, encoding: str = "utf-8") -> NoReturn:
    """Raises: BadInput about a file of which nothing more can be read."""
    kind, _, detail = reason.partition(": ")
    raise BadInput(f"{name}: {_sentence(kind, detail, encoding)}")


def _sentence(kind: str, detail: str, encoding: str) -> str:
    if kind == "no_field":
        if not detail:
            return "no field of those asked for, as there are no keys; --all-fields takes every string"
        return f"no field of those asked for (there are: {detail}); choose with --fields, or --all-fields"
    text = _SENTENCES.get(kind, kind.replace("_", " "))
    return text.format(encoding=encoding.upper(), megabytes=containers.RECORD_BYTES >> 20)


def tell(message: str) -> None:
    """A line for the user, beside the data."""
    print(f"malmoi: {message}", file=sys.stderr)


def source_blocks(path: Path | None) -> Iterator[bytes]:
    """Bytes of a file, unpacked, or of standard input as they come.

    Raises:
        BadInput: standard input is closed, packed, or Parquet, which needs a file.
    """
    if path is not None:
        packing = format_of(path).packing or packing_of(path)
        if packing and not format_of(path).packing:
            with path.open("rb") as file:
                yield from unpack(file, packing, str(path))
        else:
            yield from read_blocks(path)
        return
    if sys.stdin is None:
        raise BadInput(f"{STDIN} is closed; give a file, or text through a pipe")
    stdin = cast(Any, sys.stdin.buffer)
    first = stdin.read1(containers.PARAGRAPH_BYTES)
    for suffix, magic in (*PACKINGS.items(), (".parquet", b"PAR1")):
        if first.startswith(magic):
            raise BadInput(f"{STDIN} is a {suffix} file; give it as a file, or unpack it first")
    while first:
        yield first
        first = stdin.read1(containers.PARAGRAPH_BYTES)


def packing_of(path: Path) -> str:
    """The packing that the first bytes of a file tell; empty for none."""
    with path.open("rb") as file:
        head = file.read(8)
    return next((suffix for suffix, magic in PACKINGS.items() if head.startswith(magic)), "")


class Output(NamedTuple):
    """Takes text and writes it as UTF-8."""

    file: IO[bytes]

    def write(self, text: str) -> None:
        self.file.write(text.encode("utf-8"))


@contextmanager
def open_output(path: Path | None) -> Iterator[Output]:
    """Standard output, or a file that appears when it is whole, packed as its name says.

    Devices and pipes are written to as they are.
    """
    if path is None:
        if sys.stdout is None:
            raise BadInput("standard output is closed; give an OUTPUT")
        yield Output(sys.stdout.buffer)
        sys.stdout.buffer.flush()
    elif path.exists() and not path.is_file():
        with path.open("wb") as device:
            yield Output(device)
    else:
        with whole_file(path) as temporary, temporary.open("wb") as file:
            packing = format_of(path).packing
            if packing:
                with _packed(packing, file) as packed:
                    yield Output(packed)
            else:
                yield Output(file)


def _packed(packing: str, file: BinaryIO) -> Any:
    return _PACK[packing](fileobj=file, mode="wb") if packing == ".gz" else _PACK[packing](file, "wb")


def _partial(path: Path) -> Path:
    return path.with_name(path.name + PARTIAL)


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
    return Line(number, text, end, "undecodable" if UNDECODED.search(text) else "")
