"""Parquet files: the chosen columns are rewritten a few megabytes at a time, all others pass as they are."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from corpus.documents.errors import BadInput
from corpus.documents.whole_files import whole_file
from corpus.pii.records import EVERYTHING, Paths, below, change_texts, escape_key, texts_of
from corpus.reading.containers import TOO_LONG, Unreadable
from corpus.reading.parquet import Rows, cell, open_parquet, read_rows, spelled_out, stored_schema
from launch.pii.json_text import NOT_TEXT, UNDECODABLE, literal
from launch.pii.plain_text import Meet
from launch.pii.streams import Output
from launch.pii.work import Finding, Hiding, SpanRow, nfc


class Columns(NamedTuple):
    """What is chosen of each column; columns that are not named here are not looked at."""

    paths: dict[str, Paths]


def choose_columns(schema: pa.Schema, paths: Paths) -> Columns:
    """Columns that hold chosen text.

    Raises:
        Unreadable: none of the names is there, or a named one holds no text.
    """
    chosen = {field.name: below(paths, field.name) for field in schema if below(paths, field.name)}
    if not chosen:
        raise Unreadable(f"no_field: {', '.join(schema.names)}")
    texts = {name: inner for name, inner in chosen.items() if _holds_text(schema.field(name).type)}
    if paths != EVERYTHING and len(texts) < len(chosen):
        raise Unreadable(NOT_TEXT)
    return Columns(texts)


def _holds_text(kind: pa.DataType) -> bool:
    types = pa.types
    if types.is_dictionary(kind):
        return _holds_text(kind.value_type)
    if types.is_struct(kind) or types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind):
        return any(_holds_text(kind.field(number).type) for number in range(kind.num_fields))
    is_string = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    return bool(is_string or types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind))


def _text(value: Any) -> Any:
    """A value with its bytes as text: writers that declare no string type store text as bytes.

    Raises:
        UnicodeDecodeError: they are not UTF-8.
    """
    if isinstance(value, bytes):
        return value.decode("utf-8")
    if isinstance(value, dict):
        return {key: _text(inner) for key, inner in value.items()}
    return type(value)([_text(inner) for inner in value]) if isinstance(value, list | tuple) else value


def hide_in_parquet(source: Path, target: Path, paths: Paths, work: Hiding, meet: Meet) -> None:
    """Write the file again, zstd inside, without the personal data of its chosen columns.

    Raises:
        Unreadable: see ``choose_columns``.
    """
    with source.open("rb") as raw, open_parquet(raw, str(source)) as file:
        schema = stored_schema(file)
        columns = choose_columns(schema, paths)
        with whole_file(target) as temporary, pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
            first = 0
            for rows in read_rows(file, raw, str(source), range(file.num_row_groups)):
                writer.write_batch(_hidden(rows, first, schema, columns, work, meet))
                first += rows.table.num_rows


def _hidden(rows: Rows, first: int, schema: pa.Schema, columns: Columns, work: Hiding, meet: Meet) -> pa.RecordBatch:
    table = rows.table
    documents = _documents(table, first)
    bad: set[int] = set()
    changed = {name: _change_column(table.column(name), paths, work, documents, name, bad, rows.too_long)
               for name, paths in columns.paths.items()}  # fmt: skip
    for place in sorted(bad | rows.too_long):
        meet(f"row {first + place + 1}", TOO_LONG if place in rows.too_long else UNDECODABLE, "")
    arrays = [
        pa.array(changed[field.name], field.type)
        if field.name in changed
        else spelled_out(table.column(field.name), field.type)
        for field in schema
    ]
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
    left_out = bad | rows.too_long
    return batch.filter(pa.array([place not in left_out for place in range(table.num_rows)])) if left_out else batch


def _documents(table: pa.RecordBatch, first: int) -> list[str]:
    """Rows with the same "id" are one document."""
    ids = table.column("id").to_pylist() if "id" in table.schema.names else [None] * table.num_rows
    return [str(first + place if name is None else name) for place, name in enumerate(ids)]


def _change_column(
    column: pa.Array,
    paths: Paths,
    work: Hiding,
    documents: list[str],
    name: str,
    bad: set[int],
    passed_over: frozenset[int],
) -> list[Any]:
    values = []
    for place, document in enumerate(documents):
        value = None
        if place not in passed_over:
            try:
                value = _text(cell(column, place))
            except UnicodeDecodeError:
                bad.add(place)
        values.append(change_texts(value, paths, _hide_in(document, work), name))
    return values


def _hide_in(document: str, work: Hiding) -> Callable[[str, str], str]:
    return lambda text, label: work.hidden(text, document, label)


def find_in_parquet(source: Path, out: Output, paths: Paths, work: Finding, flat: bool, meet: Meet) -> None:
    """Write every row as a JSON line with its spans.

    Raises:
        Unreadable: see ``choose_columns``.
    """
    with source.open("rb") as raw, open_parquet(raw, str(source)) as file:
        columns = choose_columns(stored_schema(file), paths)
        number = 0
        for rows in read_rows(file, raw, str(source), range(file.num_row_groups)):
            for place in range(rows.table.num_rows):
                number += 1
                try:
                    if place in rows.too_long:
                        raise Unreadable(TOO_LONG)
                    row = {name: cell(rows.table.column(name), place) for name in rows.table.schema.names}
                    row |= {name: _text(row[name]) for name in columns.paths}
                except (Unreadable, UnicodeDecodeError) as error:
                    meet(f"row {number}", UNDECODABLE if isinstance(error, UnicodeDecodeError) else str(error), "")
                    continue
                out.write(_with_spans(row, columns, work, flat) + "\n")


def _with_spans(row: dict[str, Any], columns: Columns, work: Finding, flat: bool) -> str:
    found: dict[str, list[SpanRow]] = {}
    for name, paths in columns.paths.items():
        row[name] = change_texts(row[name], paths, lambda text, label: nfc(text))
        for place in texts_of(row[name], paths, f"/{escape_key(name)}", name):
            if spans := work.spans(place.text, place.label):
                found[place.pointer] = [work.shown(span) for span in spans]
    shown: Any = [span for rows in found.values() for span in rows] if flat else found
    return literal(_as_json(row) | {"spans": shown})


def _as_json(value: Any) -> Any:
    """What JSON has no word for, as text."""
    if isinstance(value, dict):
        return {str(key): _as_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(inner) for inner in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def refuse_packed(path: Path, packing: str) -> None:
    """Raises: BadInput for a packed Parquet file, which cannot be read in part."""
    if packing:
        raise BadInput(f"{path}: a packed Parquet file; unpack it first, Parquet packs its columns itself")
