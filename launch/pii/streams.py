"""Read and write streams: files (compressed or not), standard input and output, and skipped records.

Output files are written atomically, in UTF-8 for any locale.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import pyarrow as pa

from corpus.documents.atomic_files import atomic_file
from corpus.documents.encoding import UNDECODED
from corpus.documents.errors import BadInput
from corpus.reading import containers
from corpus.reading.files import PACKINGS, file_format, read_blocks, unpack

STDIN = "standard input"
MAX_PEEKED_CHARS = 1 << 20
UNDECODABLE = "undecodable"
_PACK: dict[str, Callable[[Any], Any]] = {
    "": nullcontext,
    # without name and time, so equal text gives equal bytes
    ".gz": lambda file: gzip.GzipFile("", "wb", fileobj=file, mtime=0),
    ".zst": lambda file: pa.CompressedOutputStream(pa.PythonFile(file, mode="w"), "zstd"),
    ".xz": lambda file: lzma.LZMAFile(file, "wb"),  # noqa: SIM115
    ".bz2": lambda file: bz2.BZ2File(file, "wb"),
}
_SENTENCES = {
    UNDECODABLE: "not valid {encoding}; set --encoding, for example cp949, or convert the file",
    "broken_json": "not JSON; expected one object per line (for other kinds, set --format)",
    "document_too_long": "a JSON document of more than 256 million characters; convert it to JSON Lines (.jsonl)",
    "json_too_deep": "JSON is nested too deeply; flatten it first",
    "json_in_text": "line {detail} is a JSON object, not plain text; "
    "set --format jsonl, or --format text to process it as text",
    "not_an_object": "expected a JSON object",
    "no_field": "no selected field (found: {detail}); set --fields or --all-fields",
    "text_is_not_a_string": "a selected field is a number, expected a string; set other --fields",
    "open_quote": "a quote in this row is never closed; close it, or set --format text",
    "record_too_long": "longer than {megabytes} MiB; split it first, or close an open quote",
}
ReportProblem = Callable[[str, str, str], None]
"""Handles an unreadable record: its place (line, item or row), the reason, its text."""


class Problems:
    """Handles unreadable records: stop at the first one, or count them and save them in the file ``aside``.

    ``name`` and ``encoding`` are those of the current input. As a context manager, writes the file on success.
    """

    def __init__(self, stops: bool, aside: Path | None) -> None:
        self.name, self.encoding = "", "utf-8"
        self._stops, self._aside = stops, aside
        self._counts: Counter[str] = Counter()
        self._rows: IO[str] | None = None
        self._files = ExitStack()

    def report(self, place: str, reason: str, raw: str) -> None:
        """Handle one record; ``BadInput`` with ``--on-error stop``. The message never contains text of the record."""
        if self._stops:
            raise BadInput(f"{self.name}, {place}: {explain_problem(reason, self.encoding)} (or set --on-error skip)")
        kind = reason.partition(": ")[0]
        self._counts[kind] += 1
        if self._aside and self._rows is None:  # only its owner can read the file, because it contains personal data
            temporary = self._files.enter_context(atomic_file(self._aside))
            temporary.unlink(missing_ok=True)
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            self._rows = self._files.enter_context(os.fdopen(descriptor, "w", encoding="utf-8"))
        if self._rows:
            row = {"file": self.name, "place": place, "reason": kind, "raw": raw}
            self._rows.write(json.dumps(row, ensure_ascii=True) + "\n")

    def __enter__(self) -> Problems:
        return self

    def __exit__(self, error: type[BaseException] | None, *more: Any) -> None:
        self._files.__exit__(error, *more)
        if self._counts and not error:
            reasons = ", ".join(f"{reason} {count:,}" for reason, count in sorted(self._counts.items()))
            where = f"; saved in {self._aside}, which contains raw text" if self._aside else ""
            print_note(f"skipped unreadable records: {self._counts.total():,} ({reasons}){where}")


def explain_problem(reason: str, encoding: str = "utf-8") -> str:
    """A message for the reason of an ``UnreadableRecord``, such as "no_field: title, body"."""
    kind, _, detail = reason.partition(": ")
    if kind == "no_field" and not detail:
        return "no selected field, because there are no keys; set --all-fields"
    text = _SENTENCES.get(kind, kind.replace("_", " "))
    return text.format(encoding=encoding.upper(), megabytes=containers.RECORD_BYTES >> 20, detail=detail)


def print_note(message: str) -> None:
    """Print a message to standard error."""
    print(f"malmoi: {message}", file=sys.stderr)


def source_blocks(path: Path | None) -> Iterator[bytes]:
    """The decompressed bytes of a file, or the bytes of standard input as they arrive.

    ``BadInput`` if standard input is closed, compressed, or Parquet.
    """
    if path is not None:
        with path.open("rb") as file:
            head = b"" if file_format(path).packing else file.read(8)
            if packing := next((suffix for suffix, magic in PACKINGS.items() if head.startswith(magic)), ""):
                file.seek(0)
                yield from unpack(file, packing, str(path))
                return
        yield from read_blocks(path)
        return
    if sys.stdin is None:
        raise BadInput(f"{STDIN} is closed; give a file, or text through a pipe")
    stdin = cast(Any, sys.stdin.buffer)
    block = stdin.read1(containers.PARAGRAPH_BYTES)
    for suffix, magic in (*PACKINGS.items(), (".parquet", b"PAR1")):
        if block.startswith(magic):
            raise BadInput(f"{STDIN} is a {suffix} file; give its path, or decompress it first")
    while block:
        yield block
        block = stdin.read1(containers.PARAGRAPH_BYTES)


@contextmanager
def open_output(path: Path | None) -> Iterator[IO[bytes]]:
    """Standard output, or a file that is written atomically and compressed according to its name.

    Devices and pipes are written directly.
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


class TextLine(NamedTuple):
    """A line; ``problem``: too long (``text`` is then its start) or not decodable."""

    number: int
    text: str
    end: str  # "\n", "\r\n" or "" at the end of the text
    problem: str = ""


def peek(texts: Iterator[str]) -> tuple[str, Iterator[str]]:
    """The start of a text up to the end of its first non-blank line, if that is not too long, and the whole text."""
    read, head = list[str](), ""
    for text in texts:
        read.append(text)
        head = (head + text).lstrip()
        if "\n" in head or len(head) > MAX_PEEKED_CHARS:
            break
    return "".join(read), chain(read, texts)


def line_blocks(blocks: Iterable[str]) -> Iterator[list[TextLine]]:
    """The lines of a text in blocks: those that each block completes."""
    number, size = 1, 0
    parts: list[str] = []
    for block in blocks:
        *ended, rest = block.split("\n")
        lines = []
        for piece in ended:
            parts.append(piece[: max(0, containers.RECORD_BYTES - size)])
            lines.append(_line(number, "".join(parts), "\n", size + len(piece)))
            number, size = number + 1, 0
            parts.clear()
        parts.append(rest[: max(0, containers.RECORD_BYTES - size)])
        size += len(rest)
        yield lines
    if size:
        yield [_line(number, "".join(parts), "", size)]


def _line(number: int, text: str, end: str, size: int) -> TextLine:
    if size > containers.RECORD_BYTES:
        return TextLine(number, text[: containers.EXCERPT_BYTES], end, containers.TOO_LONG)
    if end and text.endswith("\r"):
        text, end = text[:-1], "\r\n"
    return TextLine(number, text, end, UNDECODABLE if UNDECODED.search(text) else "")
