"""Peak memory of this process and of each process below it, as the kernel counts it for each.

``getrusage`` will not do: what it says of a process begins with the size of the process that started it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

PROC = Path("/proc")
POLL_SECONDS = 0.05
PEAK = re.compile(r"VmHWM:\s+(\d+) kB")
KIB_PER_MIB = 1024


class Peaks:
    """Largest resident sizes seen so far, in MiB; 0 where the system has no /proc."""

    own: float = 0.0
    worker: float = 0.0

    def look(self) -> None:
        self.own = max(self.own, _peak_mib("self"))
        for child in _children("self"):
            self.worker = max(self.worker, _peak_mib(child))


@contextmanager
def watch_peaks() -> Iterator[Peaks]:
    """Looks often, as the peak of a process is gone when it has ended."""
    peaks, is_over = Peaks(), Event()

    def poll() -> None:
        while not is_over.is_set():
            peaks.look()
            time.sleep(POLL_SECONDS)

    thread = Thread(target=poll, daemon=True)
    thread.start()
    try:
        yield peaks
    finally:
        peaks.look()
        is_over.set()
        thread.join()


def _peak_mib(process: str) -> float:
    try:
        found = PEAK.search((PROC / process / "status").read_text("utf-8"))
    except OSError:  # it has just ended
        return 0.0
    return int(found[1]) / KIB_PER_MIB if found else 0.0


def _children(process: str) -> list[str]:
    found: list[str] = []
    for path in PROC.glob(f"{process}/task/*/children"):
        try:
            found += path.read_text("utf-8").split()
        except OSError:
            continue
    return found + [below for child in found for below in _children(child)]
