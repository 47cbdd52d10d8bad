"""Document shards and the parallel, resumable map over units of work.

The one format that stages share: zstd Parquet files ``shard-00000.parquet`` with the columns ``id``, ``source`` and
``sentences``. A document keeps its sentences inside, so stages exchange thousands of documents, not millions of
sentences. ``map_units`` runs a function over units (files, byte ranges, shards) in processes; every finished unit is a
folder that was renamed into place, so a killed run repeats unfinished units only and its counts stay exact.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

log = logging.getLogger(__name__)

SCHEMA = pa.schema([("id", pa.string()), ("source", pa.string()), ("sentences", pa.list_(pa.string()))])
ROW_GROUP_DOCUMENTS = 1_000
COUNTS_NAME = "counts.json"

Unit = TypeVar("Unit")


class BadInput(ValueError):
    """What the user gave cannot be used; the message says what, where, what was expected and what to do."""


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
    with pq.ParquetFile(shard) as file:
        for batch in file.iter_batches(batch_size=ROW_GROUP_DOCUMENTS):
            columns = (batch.column(name).to_pylist() for name in SCHEMA.names)
            for id_, source, sentences in zip(*columns, strict=True):
                yield Document(id_, source, tuple(sentences))


def write_shard(path: Path, documents: Iterable[Document]) -> int:
    """Write one shard under a temporary name, then rename it; returns the number of documents."""
    temporary = path.with_name(path.name + ".partial")
    written = 0
    with pq.ParquetWriter(temporary, SCHEMA, compression="zstd") as writer:
        for group in _groups(documents, ROW_GROUP_DOCUMENTS):
            columns = [[d.id for d in group], [d.source for d in group], [list(d.sentences) for d in group]]
            writer.write_table(pa.table(columns, schema=SCHEMA), row_group_size=ROW_GROUP_DOCUMENTS)
            written += len(group)
    temporary.replace(path)
    return written


def map_units(
    work: Callable[[Unit, Path], dict[str, Any]],
    units: Sequence[Unit],
    folder: Path,
    *,
    workers: int = 1,
    title: str = "units",
) -> list[dict[str, Any]]:
    """Run ``work(unit, scratch)`` once per unit, in ``workers`` processes, skipping units already finished.

    ``work`` writes its files into ``scratch`` (an empty folder) and returns counts that JSON can hold. The scratch
    folder then becomes ``folder/unit-00000``, counts included, in one rename. The caller keeps ``folder`` for one
    list of units and one configuration only.

    Args:
        work: a picklable function (module level, or ``functools.partial`` of one).
        units: picklable descriptions of work; results do not depend on the number of workers.
        folder: where unit folders live.
        workers: processes; 1 runs in this process.
        title: shown by the progress bar.

    Returns:
        counts in the order of ``units``, of earlier runs included. Exceptions of ``work`` pass through.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for left_over in folder.glob("unit-*.partial-*"):
        shutil.rmtree(left_over)
    homes = [unit_folder(folder, number) for number in range(len(units))]
    missing = [number for number, home in enumerate(homes) if not (home / COUNTS_NAME).is_file()]
    if len(missing) < len(units):
        log.info("%s: %d of %d finished earlier", title, len(units) - len(missing), len(units))
    with tqdm(total=len(units), initial=len(units) - len(missing), desc=title, disable=None) as bar:
        if workers <= 1 or len(missing) <= 1:
            for number in missing:
                _finish_unit(work, units[number], homes[number])
                bar.update()
        else:
            context, processes = get_context("spawn"), min(workers, len(missing))
            with ProcessPoolExecutor(processes, mp_context=context, initializer=_end_with_parent) as pool:
                futures = [pool.submit(_finish_unit, work, units[number], homes[number]) for number in missing]
                try:
                    for future in as_completed(futures):
                        future.result()
                        bar.update()
                except BaseException:
                    pool.shutdown(wait=True, cancel_futures=True)
                    raise
    return [json.loads((home / COUNTS_NAME).read_text("utf-8")) for home in homes]


def unit_folder(folder: Path, number: int) -> Path:
    """Where ``map_units`` leaves the files of unit ``number``."""
    return folder / f"unit-{number:05}"


def _finish_unit(work: Callable[[Unit, Path], dict[str, Any]], unit: Unit, home: Path) -> None:
    scratch = home.with_name(f"{home.name}.partial-{os.getpid()}")
    scratch.mkdir(parents=True)
    counts = work(unit, scratch)
    (scratch / COUNTS_NAME).write_text(json.dumps(counts, ensure_ascii=False), "utf-8")
    scratch.replace(home)


def _end_with_parent() -> None:
    """A killed parent cannot stop its processes: each watches for its end, lest it work beside the next run."""
    parent = parent_process()
    if parent is not None:
        Thread(target=lambda: (wait([parent.sentinel]), os._exit(1)), daemon=True).start()


def _groups(documents: Iterable[Document], size: int) -> Iterator[list[Document]]:
    group: list[Document] = []
    for document in documents:
        group.append(document)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group
