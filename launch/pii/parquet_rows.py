"""Parquet files: rewrite the selected columns, a few megabytes at a time; other columns are unchanged."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import date, time
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from corpus.documents.atomic_files import atomic_file
from corpus.reading.containers import TOO_LONG, UnreadableRecord
from corpus.reading.parquet import Rows, cell_value, decode_dictionary, open_parquet, read_rows, stored_schema
from launch.pii.json_text import NOT_TEXT, literal
from launch.pii.streams import UNDECODABLE, ReportProblem
from launch.pii.work import EVERYTHING, Finding, Hiding, Paths, RecordWork, Work, escape_key, map_strings, paths_below

Columns = dict[str, Paths]
"""Selected paths of each selected column."""


def hide_in_parquet(source: Path, target: Path, paths: Paths, work: Hiding, report: ReportProblem) -> None:
    """Write the file (zstd) without the personal data of its selected columns.

    ``UnreadableRecord`` if no selected column exists, or one has no text.
    """
    with _opened(source) as (schema, all_rows):
        columns, numbers = _choose(schema, paths), count()
        with atomic_file(target) as temporary, pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
            for rows in all_rows:
                table = rows.table
                changed = {n: cells for n, cells, _ in _changed_rows(rows, numbers, columns, columns, work, report)}
                if len(changed) < table.num_rows:
                    table = table.filter(pa.array([place in changed for place in range(table.num_rows)]))
                arrays = [
                    pa.array([cells[field.name] for cells in changed.values()], field.type)
                    if field.name in columns
                    else decode_dictionary(table.column(field.name), field.type)
                    for field in schema
                ]
                writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))


def find_in_parquet(source: Path, paths: Paths, work: Finding, report: ReportProblem) -> Iterator[str]:
    """Each row as a JSON line with its spans; raises as ``hide_in_parquet``."""
    with _opened(source) as (schema, all_rows):
        columns, numbers = _choose(schema, paths), count()
        for rows in all_rows:
            for _, row, spans in _changed_rows(rows, numbers, schema.names, columns, work, report):
                yield literal(row | {"spans": spans.format_spans()}, default=_as_text) + "\n"


@contextmanager
def _opened(source: Path) -> Iterator[tuple[pa.Schema, Iterator[Rows]]]:
    """The schema of a file, and its rows in parts."""
    with source.open("rb") as raw, open_parquet(raw, str(source)) as file:
        yield stored_schema(file), read_rows(file, raw, str(source), range(file.num_row_groups))


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


def _changed_rows(
    rows: Rows, numbers: Iterator[int], names: Collection[str], columns: Columns, work: Work, report: ReportProblem
) -> Iterator[tuple[int, dict[str, Any], RecordWork]]:
    """Place, cells (``names``) and spans of each readable row; rows with the same "id" are one document.

    ``numbers``: of the rows in the whole file, from here on.
    """
    table = rows.table
    has_id = isinstance(work, Hiding) and "id" in table.schema.names
    ids = table.column("id").to_pylist() if has_id else [None] * table.num_rows
    for place, (name_of_row, number) in enumerate(zip(ids, numbers, strict=False)):
        strings = RecordWork(work, str(number if name_of_row is None else name_of_row))
        try:
            if place in rows.too_long:
                raise UnreadableRecord(TOO_LONG)
            cells = {name: cell_value(table.column(name), place) for name in names}
            cells |= {name: _text(cells[name]) for name in columns}
        except (UnreadableRecord, UnicodeDecodeError) as error:
            reason = UNDECODABLE if isinstance(error, UnicodeDecodeError) else str(error)
            report(f"row {number + 1}", reason, "")
            continue
        strings.learn({name: cells[name] for name in columns})
        for name, paths in columns.items():
            cells[name] = map_strings(cells[name], paths, strings.change, name, f"/{escape_key(name)}")
        yield place, cells, strings


def _as_text(value: Any) -> str:
    """Values that JSON does not have, as text."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return value.isoformat() if isinstance(value, date | time) else str(value)
