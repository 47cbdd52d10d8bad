"""``kept_scores.parquet``: what an ensemble needs of one finished training, one row per scored example.

Parquet stores lists of different lengths, compresses floats well (byte stream split), and contains no code, unlike
pickle. Full float precision is kept: with half precision neighboring values become equal, and an ensemble of one model
would differ from the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from corpus.documents.atomic_files import atomic_file
from corpus.documents.errors import BadInput
from finetune.examples import Example
from finetune.task import MemberRecord

RECORDS_NAME = "kept_scores.parquet"
ABOUT = ("guid", "group")  # columns in addition to those of the records
REMAKE = "delete it and train again with finetune.keep_scores=true"


def write_records(
    path: Path, examples: Sequence[Example], group: Callable[[Example], str], records: Sequence[MemberRecord]
) -> None:
    """Write one row per example, atomically; ``group`` is ``Task.group``, stored as a number."""
    numbers: dict[str, int] = {}
    columns: dict[str, pa.Array] = {
        "guid": pa.array([example.guid for example in examples], pa.string()),
        "group": pa.array([numbers.setdefault(group(e), len(numbers)) for e in examples], pa.int32()),
        **{name: _column([record[name] for record in records]) for name in records[0]},
    }
    lists = {name: column.type.value_type for name, column in columns.items() if pa.types.is_list(column.type)}
    floats = [f"{name}.list.element" for name, kind in lists.items() if pa.types.is_floating(kind)]
    with atomic_file(path) as temporary:
        pq.write_table(
            pa.table(columns), temporary, compression="zstd", use_dictionary=False,
            use_byte_stream_split=floats or False, write_statistics=False,
        )  # fmt: skip


def _column(values: Sequence[Any]) -> pa.Array:
    """Lists of texts, or flat arrays of one type, as a list column."""
    if isinstance(values[0], list):
        return pa.array(values, pa.list_(pa.string()))
    bounds = np.cumsum([0, *map(len, values)])
    return pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), pa.array(np.concatenate(values)))


def read_records(path: Path, guids: Sequence[str]) -> tuple[list[MemberRecord], list[str]]:
    """The records of the examples ``guids`` in this order, and the group of each; ``BadInput`` if the file does not
    have exactly these examples."""
    try:
        with pq.ParquetFile(path) as file:
            rows = file.metadata.num_rows
            table = file.read() if rows == len(guids) and set(ABOUT) < set(file.schema_arrow.names) else None
    except (pa.ArrowException, OSError) as error:
        raise BadInput(f"{path}: not readable ({str(error)[:100]}); {REMAKE}") from None
    place = {} if table is None else {guid: row for row, guid in enumerate(table["guid"].to_pylist())}
    if table is None or set(place) != set(guids):
        raise BadInput(f"{path}: {rows:,} rows do not match the {len(guids):,} predictions of this result; {REMAKE}")
    order = [place[guid] for guid in guids]
    columns = {name: _values(table[name].combine_chunks()) for name in table.column_names if name not in ABOUT}
    groups = [str(number) for number in table["group"].to_pylist()]
    return [{name: values[row] for name, values in columns.items()} for row in order], [groups[row] for row in order]


def _values(column: Any) -> Sequence[Any]:
    """Rows of a list column: arrays of numbers or lists of texts."""
    if pa.types.is_string(column.type.value_type):
        texts: list[list[str]] = column.to_pylist()
        return texts
    flat: Any = column.flatten().to_numpy(zero_copy_only=False)
    return np.split(flat, column.offsets.to_numpy()[1:-1] - column.offsets[0].as_py())


def records_of_rows(rows: Sequence[Mapping[str, Any]]) -> list[MemberRecord]:
    """Records of a task whose predictions are enough for an ensemble."""
    return [{"prediction": row["prediction"], "scores": row.get("scores")} for row in rows]
