"""What each number of an index stands for: the benchmark sentences of that text, as pairs of task and key.

A corpus holds few of them, so that the pairs of one number are read where it is found. All are 300,000 with KLUE.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

Pair = tuple[str, str]

PAIRS_NAME, ENDS_NAME, COUNTS_NAME = "item-pairs.npy", "item-ends.npy", "item-counts.json"


class Items:
    """The pairs of every number, as ``write_items`` left them in a folder."""

    def __init__(self, folder: Path) -> None:
        self._bytes, self._ends = (
            np.asarray(np.load(folder / name, mmap_mode="r", allow_pickle=False)) for name in (PAIRS_NAME, ENDS_NAME)
        )

    def __getitem__(self, number: int) -> list[Pair]:
        start = int(self._ends[number - 1]) if number else 0
        pairs = json.loads(self._bytes[start : int(self._ends[number])].tobytes())
        return [(task, key) for task, key in pairs]


def write_items(folder: Path, pairs: Iterable[Pair], numbers: Sequence[int]) -> None:
    """Leave the pairs by number; those whose number is -1 are no items."""
    items: list[list[Pair]] = [[] for _ in range(max(numbers, default=-1) + 1)]
    keys: dict[str, set[str]] = {}
    for (task, key), number in zip(pairs, numbers, strict=True):
        if number >= 0:
            items[number].append((task, key))
            keys.setdefault(task, set()).add(key)
    rows = [json.dumps(item, ensure_ascii=False).encode() for item in items]
    np.save(folder / PAIRS_NAME, np.frombuffer(b"".join(rows), np.uint8))
    np.save(folder / ENDS_NAME, np.cumsum([len(row) for row in rows], dtype=np.int64))
    (folder / COUNTS_NAME).write_text(json.dumps({task: len(found) for task, found in keys.items()}), "utf-8")


def count_items(folder: Path) -> dict[str, int]:
    """Distinct keys of items by task."""
    counts: dict[str, int] = json.loads((folder / COUNTS_NAME).read_text("utf-8"))
    return counts
