"""Index of the benchmark files for one run, and the report of which benchmark items were found where.

Beside the index lies what each of its numbers stands for: the benchmark sentences of that text as pairs of task and
key, 300,000 with KLUE. A corpus holds few of them, so the pairs of one number are read where it is found.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from corpus.config import DecontaminateConfig
from corpus.decontamination.benchmarks import BenchmarkText, read_benchmarks
from corpus.decontamination.cache import fetch_index, index_digest, keep_index
from corpus.decontamination.index import build_index
from corpus.documents.whole_files import whole_folder
from corpus.folding import fold
from corpus.reading.files import name_files
from corpus.samples import Samples
from corpus.statistics import Tally

log = logging.getLogger(__name__)

IN_BENCHMARK = "in_benchmark"
"""The rule that drops such sentences; its samples and counts are kept by task."""

SHORT_NAME = "too-short.json"
EXAMPLES_PER_TASK = 5
Pair = tuple[str, str]

PAIRS_NAME, ENDS_NAME, COUNTS_NAME = "item-pairs.npy", "item-ends.npy", "item-counts.json"


def write_index(config: DecontaminateConfig, benchmarks: list[Path], folder: Path) -> Path | None:
    """Index of benchmark sentences with the (task, key) pairs of each; None where there is nothing to keep out."""
    if not config.enabled:
        return None
    if not benchmarks:
        log.warning("no benchmark files: nothing is kept out of the corpus; set corpus.benchmarks")
        return None
    if folder.is_dir():
        return folder
    with whole_folder(folder) as scratch:
        digest = index_digest(config, benchmarks) if config.cache_index else ""
        if not (digest and fetch_index(digest, scratch)):
            _build(config, benchmarks, scratch)
            if digest:
                keep_index(digest, scratch)
    return folder


def _build(config: DecontaminateConfig, benchmarks: list[Path], folder: Path) -> None:
    texts = read_benchmarks(benchmarks, config)
    index, numbers = build_index([text.text for text in texts], config)
    log.info("%d benchmark sentences from %d files", len(texts), len(benchmarks))
    index.save(folder)
    write_items(folder, ((text.task, text.key) for text in texts), numbers)
    (folder / SHORT_NAME).write_text(json.dumps(_too_short(texts, numbers), ensure_ascii=False), "utf-8")


def _too_short(texts: list[BenchmarkText], numbers: list[int]) -> dict[str, dict[str, Any]]:
    """By task the distinct sentences that are no item, for they are everybody's words; the longest as examples."""
    found: dict[str, dict[str, None]] = {}
    for text, number in zip(texts, numbers, strict=True):
        if number < 0 and fold(text.text):
            found.setdefault(text.task, {})[text.text] = None
    return {
        task: {"count": len(short), "examples": sorted(short, key=lambda text: (-len(text), text))[:EXAMPLES_PER_TASK]}
        for task, short in found.items()
    }


def report_contamination(
    config: DecontaminateConfig,
    benchmarks: list[Path],
    index_folder: Path | None,
    tally: Tally,
    found: Counter[str],
    samples: Samples,
) -> dict[str, Any]:
    """Per task: benchmark items, those found in the corpus, corpus sentences dropped for them, examples; and what was
    too short to be an item.
    """
    counts = count_items(index_folder) if index_folder else {}
    short = json.loads((index_folder / SHORT_NAME).read_text("utf-8")) if index_folder else {}
    tasks: dict[str, dict[str, Any]] = {task: {"items": counts.get(task, 0)} for task in [*counts, *short]}
    keys = _found_keys(index_folder, found) if index_folder else {}
    for task, row in tasks.items():
        rule = f"{IN_BENCHMARK}:{task}"
        row["found"] = sorted(keys.get(task, ()))
        row["dropped_sentences"] = sum(source[f"{IN_BENCHMARK}.{task}"] for source in tally.values())
        row["too_short"] = short.get(task, {"count": 0, "examples": []})
        row["examples"] = [
            {"item": sample.note, "document": sample.document, "sentence": sample.text}
            for sample in samples
            if sample.rule == rule
        ][:EXAMPLES_PER_TASK]
    return {
        "settings": config.model_dump(),
        "benchmarks": name_files(benchmarks),
        "tasks": dict(sorted(tasks.items())),
    }


def _found_keys(index_folder: Path, found: Iterable[str]) -> dict[str, set[str]]:
    """Keys of the items found, by task."""
    items, keys = Items(index_folder), dict[str, set[str]]()
    for task, key in (pair for number in found for pair in items[int(number)]):
        keys.setdefault(task, set()).add(key)
    return keys


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
