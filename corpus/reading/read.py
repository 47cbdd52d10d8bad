"""Units of work to documents: every raw record becomes a ``Record``, a ``Reject`` that says why not, or is passed over.

A record that cannot be read costs itself and nothing else. Text becomes NFC here, once.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from corpus.documents import BadInput
from corpus.reading.containers import BROKEN_JSON, INVALID_UTF8, NOT_AN_OBJECT, Item
from corpus.reading.files import DamagedFile
from corpus.reading.formats import ADAPTERS, Skip
from corpus.reading.hub import HubSet, read_shard
from corpus.reading.inputs import AUTO, Input
from corpus.reading.units import DAMAGED, Unit, open_parquet, scan

PARQUET_BATCH_ROWS = 1_000
NAME_CHARS = 200
SURROGATE = re.compile("[\ud800-\udfff]")
DOC_ATTRIBUTE = re.compile(r'(?<!\w)(\w++)="([^"]*+)"')


class Record(NamedTuple):
    """One raw document, NFC; ``place`` is its file and byte (Parquet: row, array: item)."""

    place: str
    id: str
    source: str
    text: str


class Reject(NamedTuple):
    """``line``: line, row or item, from 1, within the unit; ``offset``: byte in the unpacked file."""

    line: int
    offset: int
    reason: str
    raw: bytes


class _Unreadable(Exception):
    pass


def read_unit(unit: Unit, counts: Counter[str], max_documents: int | None = None) -> Iterator[Record | Reject]:
    """Records and rejects of a unit in order; adds "records", "empty", "skipped.<reason>" to ``counts``.

    Args:
        max_documents: stop after so many records.
    """
    left = max_documents if max_documents is not None else -1
    rows = _read_rows(unit) if unit.input.container in ("parquet", "hub") else _read_items(unit, counts)
    for found in rows:
        if left == 0:
            return
        if isinstance(found, Skip):
            counts[f"skipped.{found.reason}"] += 1
            continue
        counts["records"] += 1
        yield found
        left -= isinstance(found, Record)


def _read_items(unit: Unit, counts: Counter[str]) -> Iterator[Record | Reject | Skip]:
    parse = PARSERS[unit.input.container]
    for item in scan(unit, counts):
        if item.problem:
            yield Reject(item.number, item.offset, item.problem, item.raw)
        elif not item.raw.strip():
            counts["empty"] += 1
        else:
            sign = "#" if unit.input.container == "array" else "@"
            place = f"{unit.input.name}{sign}{item.number if sign == '#' else item.offset}"
            try:
                yield _record(unit.input, place, parse(item))
            except _Unreadable as error:
                yield Reject(item.number, item.offset, str(error), item.raw)
            except Skip as skip:
                yield skip


def _parse_line(item: Item) -> dict[str, Any]:
    try:
        value = json.loads(item.raw.decode("utf-8"))
    except UnicodeDecodeError:
        raise _Unreadable(INVALID_UTF8) from None
    except (ValueError, RecursionError):
        raise _Unreadable(BROKEN_JSON) from None
    return _object(value)


def _parse_value(item: Item) -> dict[str, Any]:
    return _object(item.value)


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Unreadable(NOT_AN_OBJECT)
    return value


def _parse_text(item: Item) -> dict[str, Any]:
    return {"text": item.raw.decode("utf-8")}


def _parse_doc(item: Item) -> dict[str, Any]:
    try:
        head, _, text = item.raw.decode("utf-8").partition("\n")
    except UnicodeDecodeError:
        raise _Unreadable(INVALID_UTF8) from None
    return dict(DOC_ATTRIBUTE.findall(head)) | {"text": text}


PARSERS = {"lines": _parse_line, "array": _parse_value, "text": _parse_text, "docs": _parse_doc}


def _record(item: Input, place: str, fields: Mapping[str, Any]) -> Record:
    """Raises: _Unreadable with the reason; Skip where it is no document."""
    if item.format == AUTO:
        text, name = fields.get("text" if item.container == "text" else item.text_field), fields.get("id")
    else:
        adapter = ADAPTERS[item.format]
        try:
            text, name = adapter.text_of(fields), adapter.id_of(fields)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError):
            raise _Unreadable(f"not_laid_out_as_{item.format}") from None
    if text is None:
        raise _Unreadable("no_text")
    if not isinstance(text, str):
        raise _Unreadable("text_is_not_a_string")
    if SURROGATE.search(text):
        raise _Unreadable("lone_surrogate")
    default = item.path.name.split(".")[0] if not isinstance(item.path, HubSet) else item.path.name.rpartition("/")[2]
    source = item.source or _name(fields.get("source"), default)
    return Record(place, _name(name, place), source, unicodedata.normalize("NFC", text))


def _name(value: Any, default: str) -> str:
    """``value`` where it can serve as an id or source (a short string or a number), else ``default``."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return default
    name = str(value).strip()
    return name if 0 < len(name) <= NAME_CHARS and not SURROGATE.search(name) else default


def _read_rows(unit: Unit) -> Iterator[Record | Reject | Skip]:
    item = unit.input
    shard = f"{unit.start}." if isinstance(item.path, HubSet) else ""
    number = unit.first - 1
    try:
        for number, fields in enumerate(_rows(unit), unit.first):
            raw = fields.get(item.text_field)
            excerpt = raw if isinstance(raw, bytes) else repr(raw).encode("utf-8", "replace")
            try:
                yield _record(item, f"{item.name}#{shard}{number}", _decode(fields))
            except UnicodeDecodeError:
                yield Reject(number, 0, INVALID_UTF8, excerpt)
            except _Unreadable as error:
                yield Reject(number, 0, str(error), excerpt)
            except Skip as skip:
                yield skip
    except DamagedFile as error:
        yield Reject(number + 1, 0, DAMAGED, str(error).partition(": ")[2].encode())


def _decode(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value.decode("utf-8") if isinstance(value, bytes) else value for key, value in fields.items()}


def _rows(unit: Unit) -> Iterator[dict[str, Any]]:
    item = unit.input
    if isinstance(item.path, HubSet):
        for row in read_shard(item.path, unit.start):
            if item.format == AUTO and item.text_field not in row:
                raise _no_column(item, list(row))
            yield row
        return
    with open_parquet(item) as file:
        names = file.schema_arrow.names
        if item.format == AUTO and item.text_field not in names:
            raise _no_column(item, names)
        wanted = [name for name in dict.fromkeys((item.text_field, "id", "source")) if name in names]
        groups = list(range(unit.start, file.num_row_groups if unit.end is None else unit.end))
        columns = wanted if item.format == AUTO else None
        try:
            for batch in file.iter_batches(PARQUET_BATCH_ROWS, row_groups=groups, columns=columns):
                yield from _rows_of(batch)
        except (pa.ArrowException, OSError) as error:
            raise DamagedFile(f"{item.path}: damaged Parquet file ({error})") from error


def _no_column(item: Input, names: list[str]) -> BadInput:
    return BadInput(
        f"{item.path}: no column {item.text_field!r} (there are: {', '.join(names)}); set corpus.text_field"
    )


def _rows_of(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Rows as dicts, strings as bytes: Arrow does not promise that a string column holds valid UTF-8."""
    columns = [
        column.cast(pa.large_binary())
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        else column
        for column in batch.columns
    ]
    for values in zip(*(column.to_pylist() for column in columns), strict=True):
        yield dict(zip(batch.schema.names, values, strict=True))
