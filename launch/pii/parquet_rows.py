"""Parquet files: rewrite the selected columns, a few megabytes at a time; other columns are unchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from corpus.documents.atomic_files import atomic_file
from corpus.reading.containers import TOO_LONG, UnreadableRecord
from corpus.reading.parquet import Rows, cell_value, decode_dictionary, open_parquet, read_rows, stored_schema
from launch.pii.json_text import NOT_TEXT, literal
from launch.pii.streams import UNDECODABLE, ReportProblem
from launch.pii.work import EVERYTHING, Finding, Hiding, Paths, SpanRow, escape_key, map_strings, nfc, paths_below

Columns = dict[str, Paths]
"""Selected paths of each selected column."""


def hide_in_parquet(source: Path, target: Path, paths: Paths, work: Hiding, report: ReportProblem) -> None:
    """Write the file (zstd) without the personal data of its selected columns.

    Raises:
        UnreadableRecord: no selected column exists, or one has no text.
    """
    with _opened(source) as (schema, all_rows):
        columns = _choose(schema, paths)
        with atomic_file(target) as temporary, pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
            for first, rows in all_rows:
                writer.write_batch(_hidden(rows, first, schema, columns, work, report))


def find_in_parquet(source: Path, paths: Paths, work: Finding, flat: bool, report: ReportProblem) -> Iterator[str]:
    """Each row as a JSON line with its spans; raises as ``hide_in_parquet``."""
    with _opened(source) as (schema, all_rows):
        columns = _choose(schema, paths)
        for first, rows in all_rows:
            for place in range(rows.table.num_rows):
                try:
                    if place in rows.too_long:
                        raise UnreadableRecord(TOO_LONG)
                    row = {name: cell_value(rows.table.column(name), place) for name in rows.table.schema.names}
                    row |= {name: _text(row[name]) for name in columns}
                except (UnreadableRecord, UnicodeDecodeError) as error:
                    reason = UNDECODABLE if isinstance(error, UnicodeDecodeError) else str(error)
                    report(f"row {first + place + 1}", reason, "")
                else:
                    yield _with_spans(row, columns, work, flat)


@contextmanager
def _opened(source: Path) -> Iterator[tuple[pa.Schema, Iterator[tuple[int, Rows]]]]:
    """The schema of a file, and its rows in parts, each with the number of rows before."""
    with source.open("rb") as raw, open_parquet(raw, str(source)) as file:

        def read() -> Iterator[tuple[int, Rows]]:
            first = 0
            for rows in read_rows(file, raw, str(source), range(file.num_row_groups)):
                yield first, rows
                first += rows.table.num_rows

        yield stored_schema(file), read()


def _choose(schema: pa.Schema, paths: Paths) -> Columns:
    chosen = {field.name: paths_below(paths, field.name) for field in schema if paths_below(paths, field.name)}
    if not chosen:
        raise UnreadableRecord(f"no_field: {', '.join(schema.names)}")
    texts = {name: inner for name, inner in chosen.items() if _holds_text(schema.field(name).type)}
    if paths != EVERYTHING and len(texts) < len(chosen):
        raise UnreadableRecord(NOT_TEXT)
    return texts


def _holds_text(kind: pa.DataType) -> bool:
    types = pa.types
    if types.is_dictionary(kind):
        return _holds_text(kind.value_type)
    if types.is_struct(kind) or types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind):
        return any(_holds_text(kind.field(number).type) for number in range(kind.num_fields))
    is_string = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    return bool(is_string or types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind))


def _text(value: Any) -> Any:
    """A value with bytes decoded as UTF-8, because some writers store text as bytes; ``UnicodeDecodeError`` else."""
    if isinstance(value, bytes):
        return value.decode("utf-8")
    if isinstance(value, dict):
        return {key: _text(inner) for key, inner in value.items()}
    return type(value)([_text(inner) for inner in value]) if isinstance(value, list | tuple) else value


def _hidden(
    rows: Rows, first: int, schema: pa.Schema, columns: Columns, work: Hiding, report: ReportProblem
) -> pa.RecordBatch:
    """The rows without personal data; rows with the same "id" are one document."""
    table = rows.table
    ids = table.column("id").to_pylist() if "id" in table.schema.names else [None] * table.num_rows
    left_out = dict.fromkeys(rows.too_long, TOO_LONG)
    changed: dict[str, list[Any]] = {name: [] for name in columns}
    for place, name_of_row in enumerate(ids):
        hide = _hide_in(str(first + place if name_of_row is None else name_of_row), work)
        for name, paths in columns.items():
            try:
                value = None if place in left_out else _text(cell_value(table.column(name), place))
            except UnicodeDecodeError:
                value, left_out[place] = None, UNDECODABLE
            changed[name].append(map_strings(value, paths, hide, name))
    for place, reason in sorted(left_out.items()):
        report(f"row {first + place + 1}", reason, "")
    arrays = [
        pa.array(changed[field.name], field.type)
        if field.name in changed
        else decode_dictionary(table.column(field.name), field.type)
        for field in schema
    ]
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
    return batch.filter(pa.array([place not in left_out for place in range(table.num_rows)])) if left_out else batch


def _hide_in(document: str, work: Hiding) -> Callable[[str, str, str], str]:
    return lambda text, label, pointer: work.hidden(text, document, label)


def _with_spans(row: dict[str, Any], columns: Columns, work: Finding, flat: bool) -> str:
    found: dict[str, list[SpanRow]] = {}

    def find(text: str, label: str, pointer: str) -> str:
        if rows := work.rows(nfc(text), label):
            found[pointer] = rows
        return nfc(text)

    for name, paths in columns.items():
        row[name] = map_strings(row[name], paths, find, name, f"/{escape_key(name)}")
    shown: Any = [span for rows in found.values() for span in rows] if flat else found
    return literal(row | {"spans": shown}, default=_as_text) + "\n"


def _as_text(value: Any) -> str:
    """Values that JSON does not have, as text."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return value.isoformat() if isinstance(value, date | time) else str(value)
