"""Raw records out of .txt, .jsonl and Parquet files, by units of work that do not depend on the number of processes.

A large plain file is cut at line ends (.txt: at blank lines) so that it can use every core; packed files are one unit.
A record that cannot be read costs itself and nothing else: it comes out as a ``Reject`` with file, line and reason.
"""

from __future__ import annotations

import json
import mmap
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from corpus.documents import BadInput
from corpus.files import format_of, name_files, read_blocks, split_lines

UNIT_BYTES = 32 << 20
LINE_BYTES = 64 << 20
TXT_DOCUMENT_BYTES = 4 << 20  # a .txt file without blank lines must not become one document of gigabytes
PARQUET_BATCH_ROWS = 1_000
NAME_CHARS = 200
BREAKS = {".txt": re.compile(rb"\n\r?\n"), ".jsonl": re.compile(rb"\n")}
SURROGATE = re.compile("[\ud800-\udfff]")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Unit(NamedTuple):
    """A part of one file: bytes ``start`` to ``end``, of a Parquet file row groups; ``end`` None is all of it."""

    path: Path
    name: str  # the file in ids and reports
    start: int = 0
    end: int | None = None
    first_line: int = 1


class Record(NamedTuple):
    """One raw document, NFC; ``place`` is its file and line (Parquet: row), counted from 1."""

    place: str
    id: str
    source: str
    text: str


class Reject(NamedTuple):
    line: int
    reason: str
    raw: bytes


def plan_units(paths: Sequence[Path], *, whole_files: bool = False) -> list[Unit]:
    """Units of all files in order. ``whole_files``: one unit per file, for runs that read only its head."""
    units = []
    for path, name in zip(paths, name_files(paths), strict=True):
        kind, packing = format_of(path)
        if whole_files or packing or path.stat().st_size <= UNIT_BYTES:
            units.append(Unit(path, name))
        else:
            units += CUTTERS[kind](path, name)
    return units


def _cut_lines(path: Path, name: str) -> Iterator[Unit]:
    separator = BREAKS[format_of(path).kind]
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        start, first_line = 0, 1
        while start < len(content):
            found = separator.search(content, min(start + UNIT_BYTES, len(content)))
            end = found.end() if found else len(content)
            yield Unit(path, name, start, end, first_line)
            first_line += content[start:end].count(b"\n")
            start = end


def _cut_row_groups(path: Path, name: str) -> Iterator[Unit]:
    with _open_parquet(path) as file:
        start, first_row, rows, size = 0, 1, 0, 0
        for number in range(file.num_row_groups):
            group = file.metadata.row_group(number)
            rows, size = rows + group.num_rows, size + group.total_byte_size
            if size >= UNIT_BYTES or number + 1 == file.num_row_groups:
                yield Unit(path, name, start, number + 1, first_row)
                start, first_row, rows, size = number + 1, first_row + rows, 0, 0


CUTTERS: dict[str, Callable[[Path, str], Iterator[Unit]]] = {
    ".txt": _cut_lines,
    ".jsonl": _cut_lines,
    ".parquet": _cut_row_groups,
}


def read_unit(
    unit: Unit, text_field: str, counts: Counter[str], max_documents: int | None = None
) -> Iterator[Record | Reject]:
    """Records and rejects of a unit in file order; adds "lines" and "empty_lines" to ``counts``.

    Args:
        max_documents: stop after so many records.
    """
    left = max_documents if max_documents is not None else -1
    for found in READERS[format_of(unit.path).kind](unit, text_field, counts):
        if left == 0:
            return
        yield found
        left -= isinstance(found, Record)


def _lines(unit: Unit, counts: Counter[str]) -> Iterator[tuple[int, bytes, bool]]:
    lines = split_lines(read_blocks(unit.path, unit.start, unit.end), LINE_BYTES)
    for number, (line, is_whole) in enumerate(lines, unit.first_line):
        counts["lines"] += 1
        yield number, line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line, is_whole


def _read_jsonl(unit: Unit, text_field: str, counts: Counter[str]) -> Iterator[Record | Reject]:
    for number, line, is_whole in _lines(unit, counts):
        if not line.strip():
            counts["empty_lines"] += 1
        elif not is_whole:
            yield Reject(number, "line_too_long", line)
        else:
            yield _parse(unit, number, line, text_field)


def _parse(unit: Unit, number: int, line: bytes, text_field: str) -> Record | Reject:
    try:
        value = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError:
        return Reject(number, "invalid_utf8", line)
    except (ValueError, RecursionError):
        return Reject(number, "broken_json", line)
    if not isinstance(value, dict):
        return Reject(number, "not_an_object", line)
    return _record(unit, number, value.get(text_field), value, line)


def _record(unit: Unit, number: int, text: Any, fields: dict[str, Any], raw: bytes) -> Record | Reject:
    if text is None:
        return Reject(number, "no_text", raw)
    if not isinstance(text, str):
        return Reject(number, "text_is_not_a_string", raw)
    if SURROGATE.search(text):
        return Reject(number, "lone_surrogate", raw)
    place = f"{unit.name}:{number}"
    id_ = _name(fields.get("id"), place)
    source = _name(fields.get("source"), unit.path.name.split(".")[0])
    return Record(place, id_, source, unicodedata.normalize("NFC", text))


def _name(value: Any, default: str) -> str:
    """``value`` where it can serve as an id or source (a short string or a number), else ``default``."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return default
    name = str(value).strip()
    return name if 0 < len(name) <= NAME_CHARS and not SURROGATE.search(name) else default


def _read_txt(unit: Unit, text_field: str, counts: Counter[str]) -> Iterator[Record | Reject]:
    paragraph: list[str] = []
    first, size = 0, 0
    for number, line, is_whole in _lines(unit, counts):
        if not line.strip():
            counts["empty_lines"] += 1
        if paragraph and (not line.strip() or size > TXT_DOCUMENT_BYTES):
            yield _record(unit, first, "\n".join(paragraph), {}, b"")
            paragraph, size = [], 0
        if not is_whole:
            yield Reject(number, "line_too_long", line)
        elif line.strip():
            try:
                text = line.decode("utf-8")
            except UnicodeDecodeError:
                yield Reject(number, "invalid_utf8", line)
                continue
            first = first if paragraph else number
            paragraph.append(text)
            size += len(line)
    if paragraph:
        yield _record(unit, first, "\n".join(paragraph), {}, b"")


def _open_parquet(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except pa.ArrowException as error:
        raise BadInput(f"{path}: not a readable Parquet file ({error}); fetch or write it again") from error


def _read_parquet(unit: Unit, text_field: str, counts: Counter[str]) -> Iterator[Record | Reject]:
    with _open_parquet(unit.path) as file:
        names = file.schema_arrow.names
        if text_field not in names:
            raise BadInput(
                f"{unit.path}: no column {text_field!r} (there are: {', '.join(names)}); set corpus.text_field"
            )
        columns = [name for name in dict.fromkeys((text_field, "id", "source")) if name in names]
        groups = range(unit.start, file.num_row_groups if unit.end is None else unit.end)
        number = unit.first_line
        for batch in file.iter_batches(PARQUET_BATCH_ROWS, row_groups=list(groups), columns=columns):
            for fields in _rows(batch):
                counts["lines"] += 1
                raw = fields[text_field]
                yield (
                    _decode_row(unit, number, fields, raw)
                    if isinstance(raw, bytes)
                    else _record(unit, number, raw, fields, repr(raw).encode())
                )
                number += 1


def _rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Rows as dicts, strings as bytes: Arrow does not promise that a string column holds valid UTF-8."""
    columns = [
        column.cast(pa.large_binary())
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        else column
        for column in batch.columns
    ]
    for values in zip(*(column.to_pylist() for column in columns), strict=True):
        yield dict(zip(batch.schema.names, values, strict=True))


def _decode_row(unit: Unit, number: int, fields: dict[str, Any], raw: bytes) -> Record | Reject:
    try:
        text = raw.decode("utf-8")
        names = {key: fields[key].decode("utf-8") for key in ("id", "source") if isinstance(fields.get(key), bytes)}
    except UnicodeDecodeError:
        return Reject(number, "invalid_utf8", raw)
    return _record(unit, number, text, fields | names, raw)


READERS: dict[str, Callable[[Unit, str, Counter[str]], Iterator[Record | Reject]]] = {
    ".txt": _read_txt,
    ".jsonl": _read_jsonl,
    ".parquet": _read_parquet,
}
