"""Timing that survives a busy machine: contenders in turns, CPU time, medians; and work in a process of its own.

Absolute figures belong to the machine; ratios of one run carry over. The price: everything is done three times. A fresh
process shares no warm cache, no imported module and no memory peak with what was measured before; its CPU time counts
all processes below it, so that several cores cannot make a core look fast.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import platform
import re
import resource
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
from threading import Event, Thread
from typing import Any

from corpus.documents.atomic_files import atomic_write
from launch.errors import LaunchError

log = logging.getLogger(__name__)

ROUNDS = 3
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
POLL_SECONDS = 0.05
PARENT_SECONDS = 1.0  # between two looks at whether the parent lives
TOLD = "# "  # begins what a fresh process prints on its way
PEAK = re.compile(r"VmHWM:\s+(\d+) kB")

Work = Callable[[Any], dict[str, Any]]  # a function of a module; argument and result travel as JSON


def time_in_turns(works: Mapping[str, Callable[[], object]], rounds: int = ROUNDS) -> dict[str, float]:
    """Median CPU seconds of each work, all threads of this process included; never 0."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            start = time.process_time()
            work()
            seconds[name].append(time.process_time() - start)
    return {name: max(median(found), 1e-6) for name, found in seconds.items()}


@contextmanager
def timed(seconds: dict[str, float], name: str, clock: Callable[[], float] = time.process_time) -> Iterator[None]:
    """Note in ``seconds`` how long the block took; never 0."""
    start = clock()
    yield
    seconds[name] = max(clock() - start, 1e-6)


def fresh_in_turns(
    work: Work, orders: Mapping[str, Any], rounds: int, environment: Mapping[str, str] | None = None
) -> dict[str, dict[str, Any]]:
    """``run_fresh`` for each order, in turns: what the first round found, with medians of all its floats.

    "spread" holds the smallest and the largest of each.
    """
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in orders}
    for _ in range(rounds):
        for name, order in orders.items():
            log.info("%s", name)
            runs[name].append(run_fresh(work, order, name, environment))
    floats = {name: [key for key, n in found[0].items() if type(n) is float] for name, found in runs.items()}
    return {
        name: found[0]
        | {key: median(run[key] for run in found) for key in floats[name]}
        | {"spread": {key: [min(run[key] for run in found), max(run[key] for run in found)] for key in floats[name]}}
        for name, found in runs.items()
    }


def run_fresh(work: Work, order: Any, what: str, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Call ``work(order)`` in a fresh Python and measure it there.

    What the package of ``work`` logs there is logged here as it comes. The process ends with this one, even killed.

    Args:
        what: named in the error, "the corpus stage".
        environment: variables besides our own and one thread for numeric libraries.

    Returns:
        what ``work`` returned, "wall_s", "cpu_s" (children included), "peak_mib" of the process and "peak_worker_mib"
        of the largest process below it.

    Raises:
        LaunchError: the process failed.
    """
    root = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
    variables = os.environ | ONE_THREAD | {"PYTHONPATH": path} | dict(environment or {})
    command = [sys.executable, "-m", __name__, work.__module__, work.__name__, json.dumps(order)]
    with (
        TemporaryFile("w+") as errors,
        _ended(subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=errors, text=True)) as process,
    ):
        line = ""
        for line in process.stdout or ():
            if line.startswith(TOLD):
                log.info("%s %s", what, line.removeprefix(TOLD).rstrip())
        if process.wait():
            errors.seek(0)
            last = (errors.read().strip().splitlines() or ["no message"])[-1]
            raise LaunchError(f"{what} failed in its own process ({last}); run it alone on the same text")
    return dict(json.loads(line))


@contextmanager
def _ended(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """Nothing of the process is left when the block is, by whatever way."""
    with process:
        try:
            yield process
        finally:
            process.kill()


def _be_fresh(module: str, function: str, sent: str) -> None:
    """What the fresh process does: tell on the way, and print the result as the last line."""
    Thread(target=_end_with, args=[os.getppid()], daemon=True).start()
    logging.basicConfig(stream=sys.stdout, format=f"{TOLD}%(message)s")
    logging.getLogger(module.rpartition(".")[0]).setLevel(logging.INFO)
    print(json.dumps(measured(getattr(importlib.import_module(module), function), json.loads(sent))))


def _end_with(parent: int) -> None:
    """End this process when its parent has ended, as one that was killed stops nothing."""
    while os.getppid() == parent:
        time.sleep(PARENT_SECONDS)
    os._exit(1)


def measured(work: Work, order: Any) -> dict[str, Any]:
    """What ``run_fresh`` does in the fresh process."""
    start = time.perf_counter()
    with watch_peaks() as peaks:
        found = work(order)
    wall = time.perf_counter() - start
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return found | {"wall_s": wall, "cpu_s": sum(used.ru_utime + used.ru_stime for used in usage), **peaks}


@contextmanager
def watch_peaks() -> Iterator[dict[str, float]]:
    """Largest resident sizes, "peak_mib" of this process and "peak_worker_mib" below it; 0 where there is no /proc.

    It looks often, as the peak of a process is gone when it has ended. ``getrusage`` will not do: what it says of a
    process begins with the size of the process that started it.
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
    """A process and all below it."""
    yield process
    for path in Path("/proc").glob(f"{process}/task/*/children"):
        children: list[str] = []
        with suppress(OSError):  # it has just ended
            children = path.read_text("utf-8").split()
        for child in children:
            yield from _family(child)


def _peak_mib(process: str) -> float:
    with suppress(OSError):
        found = PEAK.search(Path(f"/proc/{process}/status").read_text("utf-8"))
        return int(found[1]) / 1024 if found else 0.0
    return 0.0


def versions_of(distributions: Iterable[str]) -> dict[str, str | None]:
    """Installed versions of packages; None where one is not installed."""
    found: dict[str, str | None] = dict.fromkeys(distributions)
    for name in found:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def write_figures(results: dict[str, Any], path: Path | None) -> dict[str, Any]:
    """The results as JSON knows them, with what absolute figures depend on; written to ``path`` if given."""
    machine = {"python": platform.python_version(), "architecture": platform.machine(), "cores": os.cpu_count()}
    text = json.dumps(results | {"machine": machine}, ensure_ascii=False, indent=2, default=asdict)
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, text + "\n")
    return dict(json.loads(text))


if __name__ == "__main__":
    _be_fresh(*sys.argv[1:])
