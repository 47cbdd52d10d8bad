"""Finds a process that hangs, names it, and ends the job, which can then be started again.

```
ranks/rank-00003.json        written by every process every few seconds: its place (step and activity) and host
hang-20261123-142005/        of the start of the run that hung
    rank-00003.txt           place, rows of the step, and Python stacks of a process that still runs
    hang.json                the message, and the places of all processes
```
A thread of each process notices that its place has not changed for ``watch.hang_minutes``. The process with the
earliest place hangs, or one whose file no longer changes: it was stopped, or its host is down. No clocks are compared.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from corpus.documents.locks import current_process
from pretrain.engine.world import World
from pretrain.interruption import REQUEUE_CODE

log = logging.getLogger(__name__)

RANKS_NAME, HANG_PREFIX, HANG_NAME = "ranks", "hang-", "hang.json"
MAX_BEAT_S = 10.0  # between two writes of a process's file
SILENT_BEATS = 3  # after these, an unchanged file means a stopped or lost process
SAVING = "saving a checkpoint"
SAVING_FACTOR = 4.0  # on the limit while saving, because disks may be slow
REPORT_LIMIT_S = 120.0  # for the report, which a failing shared folder would block


class Place(NamedTuple):
    """Where a process is: the step, the number of its places in this step so far, and its activity."""

    step: int
    number: int
    doing: str


class Watchdog:
    """Context of the training that watches this process and, through their files, the others.

    Args:
        limit_s: seconds at one place that count as hanging, 0: never.
        rows_of_step: names of the rows of a step of this process.
        leave: ends the process with an exit code, without its main thread.
    """

    def __init__(
        self,
        out: Path,
        limit_s: float,
        world: World,
        rows_of_step: Callable[[int], Sequence[str]],
        leave: Callable[[int], object] = os._exit,
    ) -> None:
        self._out, self._limit, self._world, self._rows_of_step, self._leave = out, limit_s, world, rows_of_step, leave
        self._beat_s = min(MAX_BEAT_S, limit_s / 10) if limit_s else MAX_BEAT_S
        self._start = world.broadcast(f"{datetime.now():%Y%m%d-%H%M%S}")
        self._home = out / f"{HANG_PREFIX}{self._start}"
        self._place, self._since, self._beats = Place(0, 0, "starting"), time.monotonic(), 0
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._beat, name="heartbeat", daemon=True)]
        if limit_s:
            self._threads.append(threading.Thread(target=self._watch, name="watchdog", daemon=True))

    def __enter__(self) -> Watchdog:
        (self._out / RANKS_NAME).mkdir(parents=True, exist_ok=True)
        if self._world.is_first:  # files of an earlier start with more processes
            for left in set((self._out / RANKS_NAME).iterdir()) - set(map(self._file, range(self._world.size))):
                left.unlink(missing_ok=True)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._ended.set()
        self._threads[0].join(self._beat_s)  # so that the last record is this one, with "ended"
        self._write_beat()

    def at(self, step: int, doing: str) -> None:
        """Note that this process is at another place; takes a microsecond."""
        number = self._place.number + 1 if step == self._place.step else 0
        self._place, self._since = Place(step, number, doing), time.monotonic()

    def sign(self) -> None:
        """Note that this process makes progress at the same place."""
        self._since = time.monotonic()

    def _beat(self) -> None:
        while not self._ended.is_set():
            self._write_beat()
            self._ended.wait(self._beat_s)

    def _write_beat(self) -> None:
        """Write in place, not by a rename: then other hosts see the newest closed version of the file."""
        self._beats += 1
        record = {
            "rank": self._world.rank, "process": current_process(), "start": self._start, "beat": self._beats,
            "place": self._place, "seconds": round(time.monotonic() - self._since, 1), "ended": self._ended.is_set(),
        }  # fmt: skip
        with suppress(OSError):
            self._file(self._world.rank).write_text(json.dumps(record, ensure_ascii=False) + "\n", "utf-8")

    def _file(self, rank: int) -> Path:
        return self._out / RANKS_NAME / f"rank-{rank:05}.json"

    def _watch(self) -> None:
        checked = time.monotonic()
        while not self._ended.wait(self._beat_s / 2):
            before, checked = checked, time.monotonic()
            if checked - before > self._limit / 2:  # this process itself was stopped, for example by Ctrl-Z
                self.sign()
            limit = self._limit * (SAVING_FACTOR if self._place.doing == SAVING else 1.0)
            if time.monotonic() - self._since > limit or self._home.is_dir():  # or another process noticed it first
                self._report()
                return

    def _report(self) -> None:
        """Write the report, name the process that hangs, and end this process."""
        faulthandler.dump_traceback_later(REPORT_LIMIT_S, exit=True)  # works without this thread and the folder
        waited = time.monotonic() - self._since
        with suppress(OSError):
            self._write_stacks(waited)
        records = self._read_silent()
        sentence = name_hanging(records, self._world.size, waited, self._home)
        alive = [rank for rank, record in records.items() if not record["is_silent"]]
        is_reported = (self._home / HANG_NAME).exists()  # this process was stopped meanwhile
        if self._world.rank == min(alive, default=self._world.rank) and not is_reported:
            log.error("%s", sentence)
            record = {"time": time.time(), "sentence": sentence, "ranks": list(records.values())}
            with suppress(OSError):
                (self._home / HANG_NAME).write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", "utf-8")
        else:
            self._ended.wait(2 * self._beat_s)  # the first process that leaves ends all
        self._leave(REQUEUE_CODE)

    def _write_stacks(self, waited: float) -> None:
        self._home.mkdir(exist_ok=True)
        with (self._home / f"rank-{self._world.rank:05}.txt").open("w", encoding="utf-8") as file:
            rows = " ".join(self._rows_of_step(self._place.step)) if self._place.step else ""
            file.write(
                f"rank {self._world.rank} of {self._world.size}, {current_process()}, for {waited:.0f} s in step "
                f"{self._place.step}, {self._place.doing}\nits rows (epoch:row): {rows}\n\n"
            )
            file.flush()
            faulthandler.dump_traceback(file, all_threads=True)

    def _read_silent(self) -> dict[int, dict[str, Any]]:
        """The readable records of all ranks, and whether each was unchanged for ``SILENT_BEATS``."""
        before = self._read_all()
        self._ended.wait(SILENT_BEATS * self._beat_s)
        now = self._read_all()
        beats = {rank: record["beat"] for rank, record in before.items()}
        return {rank: record | {"is_silent": record["beat"] == beats.get(rank)} for rank, record in now.items()}

    def _read_all(self) -> dict[int, dict[str, Any]]:
        records: dict[int, dict[str, Any]] = {}
        for rank in range(self._world.size):
            with suppress(OSError, ValueError, TypeError, KeyError):
                record = json.loads(self._file(rank).read_text("utf-8"))
                if record["start"] == self._start and record["rank"] == rank:
                    records[rank] = record | {"place": Place(*record["place"])}
        return records


def name_hanging(ranks: Mapping[int, Mapping[str, Any]], size: int, waited: float, home: Path) -> str:
    """The error message for a job of ``size`` processes that hangs.

    >>> at = lambda step, number, doing, **more: {"place": Place(step, number, doing), "process": ("a", 7, 0), **more}
    >>> print(name_hanging({0: at(9, 3, "updating", is_silent=False), 1: at(9, 1, "a batch", is_silent=False)}, 2,
    ...     900, Path("hang")))
    rank 1 (process 7 on a) hangs: it has been in step 9, a batch, for 900 s, while the others wait for it; stacks and \
rows are in hang; the same command resumes from the newest checkpoint
    """
    unheard = [rank for rank in range(size) if rank not in ranks]
    silent = [rank for rank, record in ranks.items() if record["is_silent"]]
    first = min((record["place"][:2] for record in ranks.values()), default=None)
    behind = [rank for rank, record in ranks.items() if record["place"][:2] == first]
    ending = f"stacks and rows are in {home}; the same command resumes from the newest checkpoint"
    if unheard or silent:
        who = ", ".join([*(f"rank {rank}" for rank in unheard), *(_name(rank, ranks[rank]) for rank in silent)])
        last = f", last seen in {_where(ranks[silent[0]]['place'])}" if silent else ""
        return f"no sign of life from {who}{last}: stopped, or its host is down; the others wait for it; {ending}"
    if len(behind) < len(ranks):
        who = ", ".join(_name(rank, ranks[rank]) for rank in behind)
        verb, they = ("hangs", "it has") if len(behind) == 1 else ("hang", "they have")
        where = _where(ranks[behind[0]]["place"])
        return f"{who} {verb}: {they} been in {where}, for {waited:.0f} s, while the others wait for it; {ending}"
    where = _where(ranks[behind[0]]["place"]) if behind else "an unknown place"
    said = "the process has" if size == 1 else f"all {size} ranks have"
    return f"{said} been in {where}, for {waited:.0f} s: a device, the network or a disk does not answer; {ending}"


def _name(rank: int, record: Mapping[str, Any]) -> str:
    host, pid, _ = record["process"]
    return f"rank {rank} (process {pid} on {host})"


def _where(place: Place) -> str:
    return f"step {place.step}, {place.doing}"
