"""A parallel, resumable map over units of work (files, byte ranges, shards).

A finished unit is a folder that was renamed into place, so a killed run repeats only unfinished units and its counts
stay exact. Worker processes end with their parent. A worker that the system kills is reported as a lack of memory.
Progress is a bar on a terminal, else a log line every 30 seconds, and a file that `malmoi status` reads.
"""

from __future__ import annotations

import json
import logging
import math
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor
from concurrent.futures import wait as wait_for
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from itertools import chain, islice
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from pathlib import Path
from threading import Event, Thread
from typing import Any, TypeVar
from uuid import uuid4

from tqdm import tqdm

from corpus.documents.atomic_files import fsync, fsync_tree, read_json
from corpus.documents.errors import BadInput, explain_panic, with_path

log = logging.getLogger(__name__)
COUNTS_NAME, PROGRESS_NAME = "counts.json", "progress.json"
REPORT_SECONDS = 30.0
MIN_ESTIMATED, WITHOUT_ESTIMATE = 0.05, "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}]"  # of the bar on a terminal
KILLED = (
    "a worker process was killed, probably because memory ran out; run the same command again with fewer workers "
    "(at least workers=1) to resume"
)

Unit = TypeVar("Unit")
MapUnits = Callable[..., list[dict[str, Any]]]  # ``map_units``, or an executor of a cluster with the same signature


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

    ``work`` writes its files into ``scratch`` (an empty folder) and returns counts as JSON values. The scratch folder,
    counts included, is then renamed to ``folder/unit-00000``. Use ``folder`` for one list of units and one
    configuration only.

    Args:
        work: a picklable function (module level, or ``functools.partial`` of one).
        units: picklable descriptions of work, taken one by one.
        size_of, total: bytes of a unit and of all units, for the progress bar; default: count units.

    Returns:
        counts in the order of ``units``, including units of earlier runs. Exceptions of ``work`` are raised.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for left_over in folder.glob("unit-*.partial-*"):
        shutil.rmtree(left_over)
    if total is None and isinstance(units, Sequence):
        total = len(units) if size_of is None else sum(map(size_of, units))
    rest = iter(units)
    first = list(islice(rest, 2))
    workers = workers if len(first) > 1 else 1  # starting a process takes a second
    homes: list[Path] = []
    earlier: list[Path] = []

    def unfinished() -> Iterator[tuple[Unit, Path]]:
        for number, unit in enumerate(chain(first, rest)):
            homes.append(unit_folder(folder, number))
            if (homes[-1] / COUNTS_NAME).is_file():
                earlier.append(homes[-1])
                progress.add(size_of(unit) if size_of else 1, is_new=False)
            else:
                yield unit, homes[-1]

    with Progress(folder / PROGRESS_NAME, title, total, is_bytes=size_of is not None) as progress:
        done = _run_here(work, unfinished()) if workers <= 1 else _in_processes(work, unfinished(), workers)
        for unit in done:
            progress.add(size_of(unit) if size_of else 1)
    if earlier:
        log.info("%s: %d of %d already finished by an earlier run", title, len(earlier), len(homes))
    return [read_json(home / COUNTS_NAME, f"delete {folder} and run again") for home in homes]


class Progress:
    """The progress of a map: ``path`` exists while it runs. ``total`` is None if it is not known."""

    def __init__(self, path: Path, title: str, total: int | None, *, is_bytes: bool) -> None:
        self._path, self._title, self._total, self._is_bytes = path, title, total, is_bytes
        self._done = self._new = 0
        self._began, self._is_over = time.monotonic(), Event()
        scale: dict[str, Any] = {"unit": "B", "unit_scale": True} if is_bytes else {}
        self._bar = tqdm(total=total, desc=title, disable=None, bar_format=WITHOUT_ESTIMATE, **scale)

    def add(self, amount: int, *, is_new: bool = True) -> None:
        """``is_new``: not finished by an earlier run."""
        self._done, self._new = self._done + amount, self._new + amount * is_new
        if self._new >= MIN_ESTIMATED * (self._total or math.inf):  # the first units wait for processes to start
            self._bar.bar_format = None
        self._bar.update(amount)
        self._write()

    def __enter__(self) -> Progress:
        self._write()
        Thread(target=self._report, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        self._bar.close()
        self._path.unlink(missing_ok=True)

    def _report(self) -> None:
        while not self._is_over.wait(REPORT_SECONDS):
            if self._bar.disable:
                log.info("%s: %s", self._title, describe_progress(self._record()))

    def _record(self) -> dict[str, Any]:
        seconds = time.monotonic() - self._began
        left = seconds / self._new * (self._total - self._done) if self._new and self._total else None
        return {
            "title": self._title, "done": self._done, "total": self._total, "is_bytes": self._is_bytes,
            "seconds": seconds, "seconds_left": left,
        }  # fmt: skip

    def _write(self) -> None:
        with suppress(OSError):  # a full disk is reported by the work
            self._path.write_text(json.dumps(self._record()), "utf-8")


def describe_progress(record: Mapping[str, Any]) -> str:
    """For example "12.0MB of 48.0MB, 01:30 left"; after a start without a finished unit, the time so far."""

    def amount(number: float) -> str:
        return f"{tqdm.format_sizeof(number)}B" if record["is_bytes"] else f"{number:,}"

    of = f" of {amount(record['total'])}" if record["total"] else " done"
    left = record["seconds_left"]
    clock = tqdm.format_interval(record["seconds"] if left is None else left)
    return f"{amount(record['done'])}{of}, {clock} {'so far' if left is None else 'left'}"


def _run_here(work: Callable[..., Any], jobs: Iterable[tuple[Unit, Path]]) -> Iterator[Unit]:
    """Yields units as they finish."""
    for unit, home in jobs:
        run_unit(work, unit, home)
        yield unit


_shared_pool: ContextVar[ProcessPoolExecutor | None] = ContextVar("shared_pool", default=None)


@contextmanager
def reuse_processes(workers: int) -> Iterator[None]:
    """All calls of ``map_units`` inside share one pool of processes, for stages with many short maps."""
    with _start_processes(workers) as pool:
        token = _shared_pool.set(pool)
        try:
            yield
        finally:
            _shared_pool.reset(token)


def _in_processes(work: Callable[..., Any], jobs: Iterable[tuple[Unit, Path]], workers: int) -> Iterator[Unit]:
    """The same in processes; at most one more unit than workers is submitted, which bounds memory."""
    shared = _shared_pool.get()
    with nullcontext(shared) if shared else _start_processes(workers) as pool:
        running: dict[Future[None], Unit] = {}
        try:
            for unit, home in jobs:
                running[pool.submit(run_unit, work, unit, home)] = unit
                if len(running) > workers:
                    yield from _collect(running)
            while running:
                yield from _collect(running)
        except BrokenProcessPool:
            raise BadInput(KILLED) from None
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _collect(running: dict[Future[None], Unit]) -> Iterator[Unit]:
    for future in wait_for(running, return_when=FIRST_COMPLETED).done:
        unit = running.pop(future)
        future.result()
        yield unit


def unit_folder(folder: Path, number: int) -> Path:
    return folder / f"unit-{number:05}"


def run_unit(work: Callable[[Unit, Path], dict[str, Any]], unit: Unit, home: Path) -> None:
    """Run one unit of ``map_units``; its files and counts appear in ``home`` atomically, on disk."""
    scratch = home.with_name(f"{home.name}.partial-{uuid4().hex}")  # process ids repeat across the nodes of a cluster
    try:
        scratch.mkdir(parents=True)
        counts = work(unit, scratch)
        (scratch / COUNTS_NAME).write_text(json.dumps(counts, ensure_ascii=False), "utf-8")
        fsync_tree(scratch)
        scratch.replace(home)
        fsync(home.parent)
    except OSError as error:
        raise with_path(error, home.parent) from error
    except BaseException as error:
        if panic := explain_panic(error):
            raise panic from None
        raise


def _start_processes(workers: int) -> ProcessPoolExecutor:
    """A pool of new processes that share no state with this one."""
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_start_process)


def _start_process() -> None:
    """Exit when the parent ends, because a killed parent cannot stop its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the processes are the parallelism
    parent = parent_process()
    if parent is not None:
        Thread(target=lambda: (wait([parent.sentinel]), os._exit(1)), daemon=True).start()
