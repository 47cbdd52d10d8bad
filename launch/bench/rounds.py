"""Timing that survives a busy machine: contenders take turns, CPU time of this process, the median of the rounds.

Absolute figures belong to the machine; ratios of one run carry over. The price: everything is done three times.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from statistics import median

ROUNDS = 3


def time_in_turns(works: Mapping[str, Callable[[], object]], rounds: int = ROUNDS) -> dict[str, float]:
    """Median CPU seconds of each work, all threads of this process included; never 0."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            start = time.process_time()
            work()
            seconds[name].append(time.process_time() - start)
    return {name: max(median(found), 1e-6) for name, found in seconds.items()}


def version_of(distribution: str) -> str | None:
    """The installed version of a package; None where it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def byte_count(texts: list[str]) -> int:
    """UTF-8 bytes."""
    return sum(len(text.encode()) for text in texts)


def spread(texts: list[str], megabytes: float) -> list[str]:
    """Whole texts from all over the list, about ``megabytes`` of UTF-8; all of them where they hold less."""
    total, wanted = byte_count(texts), megabytes * 1e6
    kept: list[str] = []
    seen = taken = 0
    for text in texts:
        size = len(text.encode())
        seen += size
        if taken + size / 2 <= seen * min(1.0, wanted / max(total, 1)):
            kept.append(text)
            taken += size
    return kept or texts[:1]
