"""Timing on a busy machine: contenders in turns, CPU time, medians; and work in a process of its own.

Absolute figures depend on the machine; ratios of one run carry over. A fresh process shares no warm cache, imported
module or memory peak with earlier measurements. Its CPU time includes all child processes.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import platform
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from tempfile import TemporaryFile
from threading import TIMEOUT_MAX, Event, Thread, Timer
from typing import Any

from corpus.documents.atomic_files import atomic_write
from launch.console import Table, number_table
from launch.errors import LaunchError

log = logging.getLogger(__name__)

ROUNDS = 3
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
POLL_SECONDS = 0.05
PARENT_SECONDS = 1.0  # interval of checks whether the parent process lives
LOG_PREFIX = "# "  # of log lines of a fresh process
PEAK = re.compile(r"VmHWM:\s+(\d+) kB")

Work = Callable[[Any], dict[str, Any]]  # a function of a module; argument and result travel as JSON


def time_in_turns(works: Mapping[str, Callable[[], object]], rounds: int = ROUNDS) -> dict[str, float]:
    """Median CPU seconds of each work, of all threads of this process; never 0."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            start = time.process_time()
            work()
            seconds[name].append(time.process_time() - start)
    return {name: max(median(own), 1e-6) for name, own in seconds.items()}


@contextmanager
def timed(seconds: dict[str, float], name: str, clock: Callable[[], float] = time.process_time) -> Iterator[None]:
    """Store the duration of the block in ``seconds``; never 0."""
    start = clock()
    yield
    seconds[name] = max(clock() - start, 1e-6)


def fresh_in_turns(
    work: Work, orders: Mapping[str, Any], rounds: int, environment: Mapping[str, str] | None = None
) -> dict[str, dict[str, Any]]:
    """Call ``run_fresh`` for each order, in turns. Returns the first result with medians of all floats."""
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in orders}
    for _ in range(rounds):
        for name, order in orders.items():
            log.info("%s", name)
            runs[name].append(run_fresh(work, order, name, environment))
    floats = {name: [key for key, n in results[0].items() if type(n) is float] for name, results in runs.items()}
    return {
        name: results[0] | {key: median(run[key] for run in results) for key in floats[name]}
        for name, results in runs.items()
    }


def run_fresh(
    work: Work, order: Any, what: str, environment: Mapping[str, str] | None = None, seconds: float | None = None
) -> dict[str, Any]:
    """Call ``work(order)`` in a fresh Python and measure it there.

    Log lines of the package of ``work`` are logged here too. The process ends when this one ends, even if killed.

    Args:
        what: for the error message, for example "the corpus stage".
        environment: variables in addition to ours and one thread for numeric libraries.
        seconds: limit, after which the process is killed.

    Returns:
        the result of ``work``, "wall_s", "cpu_s" (children included), "peak_mib" of the process and "peak_worker_mib"
        of the largest process below it.

    Raises:
        LaunchError: the process failed, or took longer than ``seconds``.
    """
    root = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
    variables = os.environ | ONE_THREAD | {"PYTHONPATH": path} | dict(environment or {})
    command = [sys.executable, "-m", __name__, work.__module__, work.__name__, json.dumps(order)]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "text": True, "start_new_session": True}
    began = time.monotonic()
    with (
        TemporaryFile("w+") as errors,
        _ended(subprocess.Popen(command, env=variables, stderr=errors, **pipes), seconds) as process,
    ):
        line = ""
        for line in process.stdout or ():
            if line.startswith(LOG_PREFIX):
                log.info("%s %s", what, line.removeprefix(LOG_PREFIX).rstrip())
        if process.wait():
            errors.seek(0)
            last = (errors.read().strip().splitlines() or ["no message"])[-1]
            if seconds and time.monotonic() - began >= seconds:
                last = f"took longer than {seconds:.0f} s"
            raise LaunchError(f"{what} failed in its own process ({last}); run it alone with the same text")
    return dict(json.loads(line))


@contextmanager
def _ended(process: subprocess.Popen[str], seconds: float | None) -> Iterator[subprocess.Popen[str]]:
    """Kill the process and its children at the end of the block, or after ``seconds``."""

    def kill() -> None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    timer = Timer(seconds or TIMEOUT_MAX, kill)
    timer.daemon = True
    with process:
        timer.start()
        try:
            yield process
        finally:
            timer.cancel()
            kill()


def _be_fresh(module: str, function: str, sent: str) -> None:
    """In the fresh process: log, and print the result as the last line."""
    Thread(target=_end_with, args=[os.getppid()], daemon=True).start()
    logging.basicConfig(stream=sys.stdout, format=f"{LOG_PREFIX}%(message)s")
    logging.getLogger(module.rpartition(".")[0]).setLevel(logging.INFO)
    print(json.dumps(measured(getattr(importlib.import_module(module), function), json.loads(sent))))


def _end_with(parent: int) -> None:
    """End this process when its parent has ended (a killed parent cannot stop it)."""
    while os.getppid() == parent:
        time.sleep(PARENT_SECONDS)
    os._exit(1)


def measured(work: Work, order: Any) -> dict[str, Any]:
    """Run ``work`` in this process and measure it."""
    start = time.perf_counter()
    with watch_peaks() as peaks:
        result = work(order)
    wall = time.perf_counter() - start
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return result | {"wall_s": wall, "cpu_s": sum(used.ru_utime + used.ru_stime for used in usage), **peaks}


@contextmanager
def watch_peaks() -> Iterator[dict[str, float]]:
    """Peak resident sizes: "peak_mib" of this process, "peak_worker_mib" of its largest child; 0 without /proc.

    It polls, because the peak of a process is lost when it ends. ``getrusage`` does not work: its peak of a process
    includes the size of the parent.
    """
    peaks, is_over = {"peak_mib": 0.0, "peak_worker_mib": 0.0}, Event()

    def look() -> None:
        own, *workers = map(_peak_mib, _family("self"))
        peaks["peak_mib"] = max(peaks["peak_mib"], own)
        peaks["peak_worker_mib"] = max([peaks["peak_worker_mib"], *workers])

    def poll() -> None:
        while not is_over.wait(POLL_SECONDS):
            look()

    thread = Thread(target=poll, daemon=True)
    thread.start()
    try:
        yield peaks
    finally:
        look()
        is_over.set()
        thread.join()


def _family(process: str) -> Iterator[str]:
    """A process and all its descendants."""
    yield process
    for path in Path("/proc").glob(f"{process}/task/*/children"):
        children: list[str] = []
        with suppress(OSError):  # the process has just ended
            children = path.read_text("utf-8").split()
        for child in children:
            yield from _family(child)


def _peak_mib(process: str) -> float:
    with suppress(OSError):
        match = PEAK.search(Path(f"/proc/{process}/status").read_text("utf-8"))
        return int(match[1]) / 1024 if match else 0.0
    return 0.0


def versions_of(distributions: Iterable[str]) -> dict[str, str | None]:
    """Installed versions of packages; None if one is not installed."""
    versions: dict[str, str | None] = dict.fromkeys(distributions)
    for name in versions:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def write_figures(results: dict[str, Any], path: Path | None) -> dict[str, Any]:
    """The results as JSON with the machine; also written to ``path`` if given."""
    machine = {"python": platform.python_version(), "architecture": platform.machine(), "cores": os.cpu_count()}
    text = json.dumps(results | {"machine": machine}, ensure_ascii=False, indent=2, default=asdict)
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, text + "\n")
    return dict(json.loads(text))


if __name__ == "__main__":
    _be_fresh(*sys.argv[1:])


def record_table(
    title: str, rows: Mapping[str, Mapping[str, Any]], columns: Mapping[str, str], note: str = "", *, first: str = ""
) -> Table:
    """``figures`` of records by name; ``columns``: head to format, "{f1:.3f}", empty where the record lacks it."""
    cells = ([name, *(_format_figure(form, record) for form in columns.values())] for name, record in rows.items())
    return number_table(title, (first, *columns), list(cells), note)


def _format_figure(form: str, record: Mapping[str, Any]) -> str:
    try:
        return form.format_map(record)
    except KeyError:
        return ""
