"""Document shards, the format that stages exchange.

zstd Parquet files ``shard-00000.parquet`` with the columns ``id``, ``source`` and ``sentences``; one row is a document.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpus.documents.atomic_files import atomic_file
from corpus.documents.errors import BadInput

SCHEMA = pa.schema([("id", pa.string()), ("source", pa.string()), ("sentences", pa.list_(pa.string()))])
ROW_GROUP_DOCUMENTS = 1_000
REMAKE = "delete the output folder of the corpus stage and run `malmoi corpus` again"


@dataclass(frozen=True, slots=True)
class Document:
    """A cleaned document; ``id`` is unique in the corpus."""

    id: str
    source: str
    sentences: tuple[str, ...]


def shard_paths(folder: Path) -> list[Path]:
    """The shards of a corpus in order; ``BadInput`` if there are none."""
    paths = sorted(folder.glob("shard-*.parquet"))
    if not paths:
        raise BadInput(f"{folder}: no document shards (shard-00000.parquet …) here; run `malmoi corpus` first")
    return paths


def read_documents(shard: Path) -> Iterator[Document]:
    """The documents of a shard in order; one row group is in memory at a time."""
    return iter_documents(read_tables(shard))


def iter_documents(tables: Iterable[pa.Table]) -> Iterator[Document]:
    for table in tables:
        columns = (table[name].to_pylist() for name in SCHEMA.names)
        for id_, source, sentences in zip(*columns, strict=True):
            yield Document(id_, source, tuple(sentences))


def read_tables(shard: Path, row_groups: Sequence[int] | None = None) -> Iterator[pa.Table]:
    """Tables of ``SCHEMA`` from all row groups, or from those numbered; null values are refused."""
    with _open_shard(shard) as file:
        for batch in file.iter_batches(ROW_GROUP_DOCUMENTS, row_groups, SCHEMA.names):
            table = pa.Table.from_batches([batch]).select(SCHEMA.names).cast(SCHEMA)
            sentences = pc.list_flatten(table["sentences"])
            for name, values in (*zip(SCHEMA.names, table.columns, strict=True), ("a sentence", sentences)):
                if values.null_count:
                    raise BadInput(f"{shard}: null where text is expected ({name}: {values.null_count}); {REMAKE}")
            yield table


@contextmanager
def _open_shard(shard: Path) -> Iterator[pq.ParquetFile]:
    """Open a shard; errors while it is read become ``BadInput``."""
    try:
        with pq.ParquetFile(shard) as file:
            if missing := set(SCHEMA.names) - set(file.schema_arrow.names):
                raise BadInput(f"{shard}: not a document shard: no column {', '.join(sorted(missing))}; {REMAKE}")
            yield file
    except pa.ArrowException as error:
        raise BadInput(f"{shard}: damaged shard ({str(error)[:100]}); {REMAKE}") from error


class ShardPortion(NamedTuple):
    """Row groups for one process, in order, and their size in bytes before compression."""

    groups: tuple[tuple[Path, int], ...]
    size: int

    def tables(self) -> Iterator[pa.Table]:
        """The documents as tables of ``SCHEMA``; one row group is in memory at a time."""
        for shard, group in self.groups:
            yield from read_tables(shard, [group])


def split_into_portions(shards: Sequence[Path], size: int) -> list[ShardPortion]:
    """Divide shards of any size into portions of about ``size`` bytes, in order."""
    portions: list[ShardPortion] = []
    held = ShardPortion((), 0)
    for shard in shards:
        for group, more in enumerate(row_group_sizes(shard)):
            held = ShardPortion((*held.groups, (shard, group)), held.size + more)
            if held.size >= size:
                portions.append(held)
                held = ShardPortion((), 0)
    return [*portions, held] if held.groups else portions


def row_group_sizes(shard: Path) -> list[int]:
    """Size of each row group before compression, in bytes."""
    with _open_shard(shard) as file:
        return [file.metadata.row_group(number).total_byte_size for number in range(file.num_row_groups)]


def write_shard(path: Path, documents: Iterable[Document]) -> int:
    """Write one shard atomically; returns the number of documents."""
    rest = iter(documents)
    groups = iter(lambda: list(islice(rest, ROW_GROUP_DOCUMENTS)), [])
    return write_tables(path, map(to_table, groups))


def write_tables(path: Path, tables: Iterable[pa.Table]) -> int:
    """The same from tables of ``SCHEMA``; row groups do not depend on how rows are divided into tables."""
    written = 0
    with atomic_file(path) as temporary, pq.ParquetWriter(temporary, SCHEMA, compression="zstd") as writer:
        for group in _row_groups(tables):
            writer.write_table(group, row_group_size=ROW_GROUP_DOCUMENTS)
            written += len(group)
    return written


def to_table(documents: Sequence[Document]) -> pa.Table:
    columns = [[d.id for d in documents], [d.source for d in documents], [list(d.sentences) for d in documents]]
    return pa.table(columns, schema=SCHEMA)


def _row_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    held = SCHEMA.empty_table()
    for table in tables:
        held = pa.concat_tables([held, table])
        while len(held) >= ROW_GROUP_DOCUMENTS:
            yield held.slice(0, ROW_GROUP_DOCUMENTS).combine_chunks()
            held = held.slice(ROW_GROUP_DOCUMENTS)
    if len(held):
        yield held.combine_chunks()
