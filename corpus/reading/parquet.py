"""Read rows of Parquet files with bounded memory.

Dictionary-encoded strings can expand to terabytes, so strings stay dictionaries, and only rows of up to ``BATCH_BYTES``
are expanded at once. Pages are decompressed as a whole, so pages above ``PAGE_BYTES`` with an extreme compression ratio
are refused by their headers (parquet.thrift, ``PageHeader``).
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpus.reading import containers
from corpus.reading.files import DamagedFile

BATCH_BYTES = 32 << 20
BATCH_ROWS = 1_000
PAGE_BYTES = 48 << 20  # writers aim at 1 MiB; reading needs twice the size
PAGE_RATIO = 100  # maximum compression ratio of larger pages
HEADER_BYTES = (1 << 12, 1 << 20)  # headers with long minima and maxima are larger
STRUCT = 12  # the type number in Thrift


class Rows(NamedTuple):
    """Consecutive rows, with strings as dictionaries (see ``decode_dictionary``); rows in ``too_long`` are null."""

    table: pa.RecordBatch
    too_long: frozenset[int]  # rows of the table with a cell above RECORD_BYTES


def open_parquet(file: BinaryIO, name: str) -> pq.ParquetFile:
    """Open a file for ``read_rows``; ``DamagedFile`` if it is not Parquet."""
    try:
        metadata = pq.read_metadata(file)
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        leaves = [(n, metadata.schema.column(n)) for n in range(metadata.num_columns)]
        delta = {n for n, _ in leaves for group in groups if "DELTA" in "".join(group.column(n).encodings)}
        strings = [leaf.path for n, leaf in leaves if leaf.physical_type == "BYTE_ARRAY" and n not in delta]
        file.seek(0)
        return pq.ParquetFile(file, read_dictionary=strings, buffer_size=1 << 20)
    except (pa.ArrowException, OSError) as error:
        raise DamagedFile(f"{name}: not a readable Parquet file ({error}); fetch or write it again") from error


def stored_schema(file: pq.ParquetFile) -> pa.Schema:
    """The schema of the file, with strings as strings."""
    return file.metadata.schema.to_arrow_schema().with_metadata(file.schema_arrow.metadata)


def read_rows(
    file: pq.ParquetFile, source: BinaryIO, name: str, groups: Sequence[int], columns: Sequence[str] | None = None
) -> Iterator[Rows]:
    """All rows of row groups in order, in parts of one row or at most ``BATCH_BYTES``.

    Args:
        source: the file object of ``file``.
        columns: top-level columns to read; default: all.
    """
    try:
        for number in groups:
            group = file.metadata.row_group(number)
            chunks = [chunk for chunk in map(group.column, range(group.num_columns)) if _is_in(chunk, columns)]
            refuse_large_pages(chunks, source, name)
            size = sum(chunk.total_uncompressed_size for chunk in chunks)
            at_once = max(1, min(BATCH_ROWS, BATCH_BYTES * group.num_rows // max(1, size)))
            for batch in file.iter_batches(at_once, row_groups=[number], columns=columns):
                yield from _split_by_bytes(batch)
    except (pa.ArrowException, OSError) as error:
        raise DamagedFile(f"{name}: damaged Parquet file ({error})") from error


def _is_in(chunk: Any, columns: Sequence[str] | None) -> bool:
    return columns is None or chunk.path_in_schema.split(".")[0] in columns or chunk.path_in_schema in columns


def _split_by_bytes(batch: pa.RecordBatch) -> Iterator[Rows]:
    size_CN = np.array([row_bytes(column) for column in batch.columns]).reshape(batch.num_columns, batch.num_rows)
    is_long_N = np.logical_or.reduce(size_CN > containers.RECORD_BYTES)
    if is_long_N.any():
        is_kept = pa.array(~is_long_N)
        columns = [pc.if_else(is_kept, column, pa.scalar(None, column.type)) for column in batch.columns]
        batch = pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
    ends = np.cumsum(np.where(is_long_N, 0, size_CN.sum(axis=0)))
    start = 0
    while start < batch.num_rows:
        before = ends[start - 1] if start else 0
        end = max(start + 1, int(np.searchsorted(ends, before + BATCH_BYTES, side="right")))
        too_long = np.flatnonzero(is_long_N[start:end])
        yield Rows(batch.slice(start, end - start), frozenset(too_long.tolist()))
        start = end


def row_bytes(column: pa.Array) -> np.ndarray:
    """Expanded size of each row in bytes, including nested values."""
    kind, types = column.type, pa.types
    if types.is_dictionary(kind):
        sizes = np.append(row_bytes(column.dictionary), 0)
        return sizes[column.indices.fill_null(len(sizes) - 1).to_numpy(False)]
    if types.is_struct(kind):
        return np.sum([row_bytes(field) for field in column.flatten()] or [np.zeros(len(column))], axis=0)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind):
        fields = [column.keys, column.items] if types.is_map(kind) else [column.values]
        ends = np.concatenate([[0], np.cumsum(np.sum([row_bytes(field) for field in fields], axis=0))])
        offsets = column.offsets.to_numpy(False)
        return np.where(column.is_valid().to_numpy(False), ends[offsets[1:]] - ends[offsets[:-1]], 0)
    if _is_fixed(kind):
        return np.full(len(column), 8, np.int64)
    return pc.binary_length(column.cast(pa.large_binary())).fill_null(0).to_numpy(False)


def _is_fixed(kind: pa.DataType) -> bool:
    types = pa.types
    return not (types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind))


def decode_dictionary(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column in the type of the file; like Arrow, does not check that text is UTF-8."""
    if pa.types.is_dictionary(column.type) and not pa.types.is_dictionary(kind):
        column = column.dictionary_decode()
    return column if column.type == kind else column.cast(kind)


def cell_value(column: pa.Array, place: int) -> Any:
    """A value as a Python object; bytes of dictionaries are copied once instead of three times."""
    if not pa.types.is_dictionary(column.type):
        return column[place].as_py()
    index = column.indices[place].as_py()
    values = column.dictionary
    if index is None or not pa.types.is_large_binary(values.type):
        return None if index is None else values[index].as_py()
    _, ends, data = values.buffers()
    start, end = np.frombuffer(ends, np.int64)[values.offset + index :][:2].tolist()
    return data[start:end].to_pybytes() if data else b""


def as_bytes(column: pa.Array) -> pa.Array:
    """A column with strings as bytes, without a copy, because Arrow strings may be invalid UTF-8."""
    if pa.types.is_dictionary(column.type):
        return pa.DictionaryArray.from_arrays(column.indices, as_bytes(column.dictionary))
    return column.cast(pa.large_binary()) if not _is_fixed(column.type) else column


def refuse_large_pages(chunks: Sequence[Any], source: BinaryIO, name: str) -> None:
    """Read the headers of all pages; ``DamagedFile`` if a page would expand too much."""
    position = source.tell()
    for chunk in chunks:
        start = min(filter(None, (chunk.dictionary_page_offset, chunk.data_page_offset)))
        end = start + chunk.total_compressed_size
        while start < end:
            for most in HEADER_BYTES:
                source.seek(start)
                if header := read_page_header(source.read(most)):
                    break
            else:
                raise OSError("a page header cannot be read")
            unpacked, packed, size = header
            if unpacked > PAGE_BYTES and unpacked > PAGE_RATIO * packed:
                raise DamagedFile(
                    f"{name}: column {chunk.path_in_schema} has a page of {packed:,} bytes that unpacks to "
                    f"{unpacked:,}; write the file again with pages of about one MiB"
                )
            start += size + packed
    source.seek(position)


def read_page_header(raw: bytes) -> tuple[int, int, int] | None:
    """Uncompressed size, compressed size and header size of a page (Thrift compact protocol); None if invalid."""
    stream = io.BytesIO(raw)
    try:
        fields = _value(stream, STRUCT)
    except (IndexError, OverflowError, RecursionError):
        return None
    unpacked, packed = fields.get(2), fields.get(3)
    is_header = isinstance(unpacked, int) and isinstance(packed, int) and min(unpacked, packed) >= 0
    return (unpacked, packed, stream.tell()) if is_header else None


def _byte(stream: BinaryIO) -> int:
    return stream.read(1)[0]


def _varint(stream: BinaryIO) -> int:
    value = 0
    for shift in range(0, 64, 7):
        byte = _byte(stream)
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value
    raise OverflowError


def _value(stream: BinaryIO, kind: int) -> Any:
    """Read a Thrift value: an integer, or the fields of a struct by number; other values are skipped."""
    if kind in (4, 5, 6):  # i16, i32, i64 in zigzag
        value = _varint(stream)
        return value >> 1 ^ -(value & 1)
    if kind == STRUCT:
        fields: dict[int, Any] = {}
        number = 0
        while head := _byte(stream):
            number = number + (head >> 4) if head >> 4 else _value(stream, 4)
            fields[number] = _value(stream, head & 0xF)
        return fields
    if kind in (9, 10):  # list, set
        head = _byte(stream)
        inner = 3 if head & 0xF in (1, 2) else head & 0xF  # a boolean takes one byte here
        for _ in range(_varint(stream) if head >> 4 == 15 else head >> 4):
            _value(stream, inner)
    elif kind in (3, 7, 8):  # byte, double, binary
        stream.read(_varint(stream) if kind == 8 else 1 if kind == 3 else 8)
    elif kind not in (1, 2):  # true, false
        raise IndexError
    return None
