"""Build the index of the benchmark files of a run, and report which benchmark items were found.

A table next to the index maps its numbers to tasks and keys of benchmark sentences (300,000 rows for KLUE). It is
memory-mapped, because a corpus contains few of them. Personal data in names, keys and quoted sentences is hidden when
the index is built.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather

from corpus.card.samples import Samples
from corpus.card.statistics import SourceCounts
from corpus.config import DecontaminateConfig
from corpus.decontamination.benchmarks import BenchmarkText, CustomTexts, read_benchmarks
from corpus.decontamination.index import build_index
from corpus.decontamination.match_rule import MatchRule
from corpus.documents.atomic_files import atomic_dir, read_json
from corpus.pii.hide import DocumentHider
from corpus.sentences.folding import fold

log = logging.getLogger(__name__)

IN_BENCHMARK = "in_benchmark"
"""Name of the rule; its samples and counts are by task."""

ITEMS_NAME, SHORT_NAME = "items.feather", "too-short.json"
EXAMPLES_PER_TASK = 5


def prepare_index(
    config: DecontaminateConfig, benchmarks: list[Path], custom: CustomTexts, folder: Path, hider: DocumentHider
) -> Path | None:
    """Build the index of benchmark sentences; None if decontamination is off or there are no files."""
    if not config.enabled:
        return None
    if not (benchmarks or custom):
        log.warning("no benchmark files, so no decontamination; set corpus.benchmarks")
        return None
    if folder.is_dir():
        return folder
    with atomic_dir(folder) as scratch:
        texts = read_benchmarks(benchmarks, custom)
        log.info("%d benchmark sentences from %d files", len(texts), len(benchmarks) + len(custom))
        _build_index(MatchRule(config.threshold), texts, scratch, hider)
    return folder


def _build_index(rule: MatchRule, texts: list[BenchmarkText], folder: Path, hider: DocumentHider) -> None:
    index, numbers = build_index([text.text for text in texts], rule)
    index.save(folder)
    texts = [BenchmarkText(hider.hide_in_file_name(t.task), hider.hide_in_name(t.key), t.text) for t in texts]
    items = sorted((number, n) for n, number in enumerate(numbers) if number >= 0)
    schema = pa.schema([("item", pa.int32()), ("task", pa.string()), ("key", pa.string())])
    rows = [{"item": number, "task": texts[n].task, "key": texts[n].key} for number, n in items]
    feather.write_feather(pa.Table.from_pylist(rows, schema), str(folder / ITEMS_NAME), compression="uncompressed")
    (folder / SHORT_NAME).write_text(json.dumps(_too_short(texts, numbers, hider), ensure_ascii=False), "utf-8")


def _too_short(texts: list[BenchmarkText], numbers: list[int], hider: DocumentHider) -> dict[str, dict[str, Any]]:
    """The distinct sentences of each task that are too short, with the longest ones as examples."""
    short_texts: dict[str, set[str]] = {}
    for text, number in zip(texts, numbers, strict=True):
        if number < 0 and fold(text.text):
            short_texts.setdefault(text.task, set()).add(text.text)
    longest = {task: sorted(short, key=lambda text: (-len(text), text)) for task, short in short_texts.items()}
    return {
        task: {"count": len(short), "examples": [hider.tag(text) for text in short[:EXAMPLES_PER_TASK]]}
        for task, short in longest.items()
    }


class BenchmarkItems:
    """Tasks and keys of the numbers of an index."""

    def __init__(self, folder: Path) -> None:
        self.table = feather.read_table(str(folder / ITEMS_NAME), memory_map=True)
        self._items = self.table["item"].to_numpy()

    def __getitem__(self, number: int) -> list[tuple[str, str]]:
        """Pairs of task and key, in the order of the benchmark files."""
        first, end = np.searchsorted(self._items, (number, number + 1)).tolist()
        rows = self.table.slice(first, end - first)
        return list(zip(rows["task"].to_pylist(), rows["key"].to_pylist(), strict=True))


def report_contamination(
    config: DecontaminateConfig,
    benchmarks: list[str],
    index_folder: Path | None,
    tally: SourceCounts,
    hits: Counter[str],
    samples: Samples,
) -> dict[str, Any]:
    """The content of decontamination.json: per task, the number of benchmark items, the items found in the corpus, the
    dropped corpus sentences, examples, and sentences that are too short."""
    tasks: dict[str, dict[str, Any]] = {}
    if index_folder:
        items, short = BenchmarkItems(index_folder), read_json(index_folder / SHORT_NAME, "run the stage again")
        columns = items.table.group_by("task").aggregate([("key", "count_distinct")]).to_pydict()
        counts = dict(zip(columns["task"], columns["key_count_distinct"], strict=True))
        pairs = {pair for number in hits for pair in items[int(number)]}
        for task in sorted({*counts, *short}):
            rule = f"{IN_BENCHMARK}:{task}"
            examples = [
                {"item": sample.note, "document": sample.document, "sentence": sample.text}
                for sample in samples
                if sample.rule == rule
            ]
            tasks[task] = {
                "items": counts.get(task, 0),
                "found": sorted(key for of_task, key in pairs if of_task == task),
                "dropped_sentences": sum(source[f"{IN_BENCHMARK}.{task}"] for source in tally.values()),
                "too_short": short.get(task, {"count": 0, "examples": []}),
                "examples": examples[:EXAMPLES_PER_TASK],
            }
    settings = {"enabled": config.enabled} | asdict(MatchRule(config.threshold))
    return {"settings": settings, "benchmarks": benchmarks, "tasks": tasks}
