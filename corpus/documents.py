"""Document shards and the parallel, resumable map over units of work.

The one format that stages share: zstd Parquet files ``shard-00000.parquet`` with the columns ``id``, ``source`` and
``sentences``. A document keeps its sentences inside, so stages exchange thousands of documents, not millions of
sentences. ``map_units`` runs a function over units (files, byte ranges, shards) in processes; every finished unit is a
folder that was renamed into place, so a killed run repeats unfinished units only and its counts stay exact.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, Future, ProcessPoolExecutor
from concurrent.futures import wait as wait_for
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

from corpus.processes import KILLED, start_processes
from corpus.whole_files import BadInput, located, read_json, rename_settled, settle, settle_all

log = logging.getLogger(__name__)
SCHEMA = pa.schema([("id", pa.string()), ("source", pa.string()), ("sentences", pa.list_(pa.string()))])
ROW_GROUP_DOCUMENTS = 1_000
COUNTS_NAME = "counts.json"
REMAKE = "delete the folder of the corpus stage and run `malmoi corpus` again"

Unit = TypeVar("Unit")


@dataclass(frozen=True, slots=True)
class Document:
    """One cleaned document: ``id`` is unique in the corpus, ``source`` names where it came from."""

    id: str
    source: str
    sentences: tuple[str, ...]


def shard_paths(folder: Path) -> list[Path]:
    """The shards of a corpus in order.

    Raises:
        BadInput: the folder holds no shard.
    """
    paths = sorted(folder.glob("shard-*.parquet"))
    if not paths:
        raise BadInput(f"{folder}: no document shards (shard-00000.parquet …) here; run `malmoi corpus` first")
    return paths


def read_documents(shard: Path) -> Iterator[Document]:
    """Documents of one shard in file order, a row group in memory at a time."""
    return documents_of(read_tables(shard))


def documents_of(tables: Iterable[pa.Table]) -> Iterator[Document]:
    """Documents of tables of ``SCHEMA``."""
    for table in tables:
        columns = (table[name].to_pylist() for name in SCHEMA.names)
        for id_, source, sentences in zip(*columns, strict=True):
            yield Document(id_, source, tuple(sentences))


def read_tables(shard: Path, row_groups: Sequence[int] | None = None) -> Iterator[pa.Table]:
    """The same as tables of ``SCHEMA``: of all row groups, or of those numbered."""
    with _opened(shard) as file:
        for batch in file.iter_batches(ROW_GROUP_DOCUMENTS, row_groups, SCHEMA.names):
            yield pa.Table.from_batches([batch])


@contextmanager
def _opened(shard: Path) -> Iterator[pq.ParquetFile]:
    """A shard open for reading; what is wrong with it while it is read is a ``BadInput``."""
    try:
        with pq.ParquetFile(shard) as file:
            if missing := set(SCHEMA.names) - set(file.schema_arrow.names):
                raise BadInput(f"{shard}: no column {', '.join(sorted(missing))}, so no document shard; {REMAKE}")
            yield file
    except pa.ArrowException as error:
        raise BadInput(f"{shard}: a damaged shard ({str(error)[:100]}); {REMAKE}") from error


class Portion(NamedTuple):
    """Documents that one process works on: row groups of shards, in order, and their bytes before compression."""

    groups: tuple[tuple[Path, int], ...]
    size: int

    def tables(self) -> Iterator[pa.Table]:
        """The documents as tables of ``SCHEMA``, a row group in memory at a time."""
        for shard, group in self.groups:
            yield from read_tables(shard, [group])


def portions_of(shards: Sequence[Path], size: int) -> list[Portion]:
    """The shards divided, whatever their number and sizes, into portions of about ``size`` bytes, in order."""
    portions: list[Portion] = []
    held = Portion((), 0)
    for shard in shards:
        for group, more in enumerate(row_group_sizes(shard)):
            held = Portion((*held.groups, (shard, group)), held.size + more)
            if held.size >= size:
                portions.append(held)
                held = Portion((), 0)
    return [*portions, held] if held.groups else portions


def row_group_sizes(shard: Path) -> list[int]:
    """Bytes of each row group before compression."""
    with _opened(shard) as file:
        return [file.metadata.row_group(number).total_byte_size for number in range(file.num_row_groups)]


def write_shard(path: Path, documents: Iterable[Document]) -> int:
    """Write one shard under a temporary name, then rename it; returns the number of documents."""
    rest = iter(documents)
    groups = iter(lambda: list(islice(rest, ROW_GROUP_DOCUMENTS)), [])
    return write_tables(path, map(to_table, groups))


def write_tables(path: Path, tables: Iterable[pa.Table]) -> int:
    """The same from tables with the columns of ``SCHEMA``; row groups do not depend on how the rows are divided."""
    temporary = path.with_name(path.name + ".partial")
    written = 0
    with pq.ParquetWriter(temporary, SCHEMA, compression="zstd") as writer:
        for group in _row_groups(tables):
            writer.write_table(group, row_group_size=ROW_GROUP_DOCUMENTS)
            written += len(group)
    rename_settled(temporary, path)
    return written


def to_table(documents: Sequence[Document]) -> pa.Table:
    """Documents as a table of ``SCHEMA``."""
    columns = [[d.id for d in documents], [d.source for d in documents], [list(d.sentences) for d in documents]]
    return pa.table(columns, schema=SCHEMA)


def _row_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    held: list[pa.Table] = []
    rows = 0
    for table in tables:
        held.append(table)
        rows += len(table)
        while rows >= ROW_GROUP_DOCUMENTS:
            joined = pa.concat_tables(held)
            yield joined.slice(0, ROW_GROUP_DOCUMENTS).combine_chunks()
            held = [joined.slice(ROW_GROUP_DOCUMENTS)]
            rows -= ROW_GROUP_DOCUMENTS
    if rows:
        yield pa.concat_tables(held).combine_chunks()


def map_units(
    work: Callable[[Unit, Path], dict[str, Any]],
    units: Iterable[Unit],
    folder: Path,
    *,
    workers: int = 1,
    title: str = "units",
    size_of: Callable[[Unit], int] | None = None,
    total: int | None = None,
) -> list[dict[str, Any]]:
    """Run ``work(unit, scratch)`` once per unit, in ``workers`` processes, skipping units already finished.

    ``work`` writes its files into ``scratch`` (an empty folder) and returns counts that JSON can hold. The scratch
    folder then becomes ``folder/unit-00000``, counts included, in one rename. The caller keeps ``folder`` for one
    list of units and one configuration only.

    Args:
        work: a picklable function (module level, or ``functools.partial`` of one).
        units: picklable descriptions of work, taken one by one as processes get free; results do not depend on the
            number of workers.
        workers: processes; 1 runs in this process.
        size_of, total: bytes of a unit and of all, for rate and remaining time; units are counted without.

    Returns:
        counts in the order of ``units``, of earlier runs included. Exceptions of ``work`` pass through.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for left_over in folder.glob("unit-*.partial-*"):
        shutil.rmtree(left_over)
    if total is None and isinstance(units, Sequence):
        total = len(units) if size_of is None else sum(map(size_of, units))
    rest = iter(units)
    first = list(islice(rest, 2))
    workers = workers if len(first) > 1 else 1  # a process of its own costs a second
    scale: dict[str, Any] = {"unit": "B", "unit_scale": True} if size_of else {}
    with tqdm(total=total, desc=title, disable=None, **scale) as bar:
        run = _here if workers <= 1 else partial(_in_processes, workers)
        homes: list[Path] = []
        found = 0
        for unit, is_new in run(_jobs(work, chain(first, rest), folder, homes)):
            bar.update(size_of(unit) if size_of else 1)
            found += not is_new
    if found:
        log.info("%s: %d of %d finished earlier", title, found, len(homes))
    return [read_json(home / COUNTS_NAME, f"delete {folder} and run again") for home in homes]


class _Job(NamedTuple):
    work: Callable[[Any, Path], dict[str, Any]]
    unit: Any
    home: Path

    @property
    def is_finished(self) -> bool:
        return (self.home / COUNTS_NAME).is_file()


def _jobs(work: Callable[..., Any], units: Iterable[Any], folder: Path, homes: list[Path]) -> Iterator[_Job]:
    for number, unit in enumerate(units):
        homes.append(unit_folder(folder, number))
        yield _Job(work, unit, homes[-1])


def _here(jobs: Iterable[_Job]) -> Iterator[tuple[Any, bool]]:
    """Units as they are done, each with whether it had to be worked on."""
    for job in jobs:
        is_new = not job.is_finished
        if is_new:
            finish_unit(job.work, job.unit, job.home)
        yield job.unit, is_new


_shared_pool: ContextVar[ProcessPoolExecutor | None] = ContextVar("shared_pool", default=None)


@contextmanager
def shared_processes(workers: int) -> Iterator[None]:
    """All calls of ``map_units`` inside use the same processes: a stage of many short maps starts them once."""
    with start_processes(workers) as pool:
        token = _shared_pool.set(pool)
        try:
            yield
        finally:
            _shared_pool.reset(token)


def _in_processes(workers: int, jobs: Iterable[_Job]) -> Iterator[tuple[Any, bool]]:
    """The same in processes; one unit waits beside those that are worked on, so memory stays bounded."""
    shared = _shared_pool.get()
    with nullcontext(shared) if shared else start_processes(workers) as pool:
        running: dict[Future[None], Any] = {}
        try:
            for job in jobs:
                if job.is_finished:
                    yield job.unit, False
                    continue
                running[pool.submit(finish_unit, job.work, job.unit, job.home)] = job.unit
                if len(running) > workers:
                    yield from _collect(running, FIRST_COMPLETED)
            yield from _collect(running, ALL_COMPLETED)
        except BrokenProcessPool:
            raise BadInput(KILLED) from None
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _collect(running: dict[Future[None], Any], when: str) -> Iterator[tuple[Any, bool]]:
    while running:
        for future in wait_for(running, return_when=FIRST_COMPLETED).done:
            unit = running.pop(future)
            future.result()
            yield unit, True
        if when == FIRST_COMPLETED:
            return


def unit_folder(folder: Path, number: int) -> Path:
    """Where ``map_units`` leaves the files of unit ``number``."""
    return folder / f"unit-{number:05}"


def finish_unit(work: Callable[[Unit, Path], dict[str, Any]], unit: Unit, home: Path) -> None:
    """Do one unit of ``map_units``: its files and counts appear in ``home`` at once, and the disk has them by then."""
    scratch = home.with_name(f"{home.name}.partial-{uuid4().hex}")  # nodes of a cluster may share process numbers
    try:
        scratch.mkdir(parents=True)
        counts = work(unit, scratch)
        (scratch / COUNTS_NAME).write_text(json.dumps(counts, ensure_ascii=False), "utf-8")
        settle_all(scratch)
        scratch.replace(home)
        settle(home.parent)
    except OSError as error:
        raise located(error, home.parent) from error
