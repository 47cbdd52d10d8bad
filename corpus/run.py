"""The corpus stage: raw text files to document shards, statistics, samples of what was dropped and a quarantine.

```
texts ─ clean (processes, one part per unit) ─▶ parts ─ assemble (sequential) ─▶ documents/shard-00000.parquet …
benchmarks ─▶ index ─┘                                                          statistics.json, decontamination.json
```
Parts live in a hidden folder named by the settings and inputs they were made from, so that a killed run goes on where
it stopped and other settings never meet old parts; it goes when the stage is complete.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from corpus.assemble import write_corpus, write_quarantine
from corpus.benchmarks import BenchmarkText, read_benchmarks
from corpus.clean import IN_BENCHMARK, ITEMS_NAME, clean_unit
from corpus.config import CorpusConfig
from corpus.decontaminate import build_index
from corpus.documents import BadInput, map_units, unit_folder
from corpus.files import name_files
from corpus.quarantine import check_share
from corpus.read import plan_units
from corpus.samples import Samples
from corpus.statistics import Tally, describe

log = logging.getLogger(__name__)

EXAMPLES_PER_TASK = 5
INDEX_NAME = "index"
UNITS_NAME = "units"


class CorpusInputs(NamedTuple):
    """Files to read: ``corpus.files.find_texts`` and ``corpus.benchmarks.find_benchmarks`` expand patterns to them."""

    texts: list[Path]
    benchmarks: list[Path]


def run(config: CorpusConfig, inputs: CorpusInputs, out: Path, *, workers: int = 1) -> dict[str, Any]:
    """Clean the texts into ``out/documents``; see ``launch`` for manifest and skipping.

    Args:
        out: existing folder, empty or left by a killed run.
        workers: processes; the output does not depend on it.

    Returns:
        counts: "documents", "sentences", "words", "characters", "bytes" kept, and what was read, dropped, replaced.

    Raises:
        BadInput: no document in or out, too many unreadable records, a damaged file.
    """
    parts = _open_parts(config, inputs, out)
    index_folder = _write_index(config, inputs.benchmarks, parts)
    units = plan_units(inputs.texts, whole_files=config.max_documents_per_file is not None)
    work = partial(clean_unit, config=config, index_folder=index_folder)
    counted = map_units(work, units, parts / UNITS_NAME, workers=workers, title="clean")
    folders = [unit_folder(parts / UNITS_NAME, number) for number in range(len(units))]

    tally, records, found = _sum(counted)
    quarantine = write_quarantine(folders, out)
    read = sum(counts["documents_read"] for counts in tally.values())
    check_share(records["rejected"], read, config.max_bad_share, str(quarantine))
    if not read:
        raise BadInput(f"no document in {len(inputs.texts)} input files; check corpus.inputs and corpus.text_field")
    samples = write_corpus(folders, out, config, tally)
    statistics = describe(tally, records)
    if not statistics["total"]["documents"]:
        dropped = statistics["total"]["dropped_sentences"]
        raise BadInput(f"none of {read} documents is left (sentences dropped: {dropped}); loosen the rules of corpus")

    _write_json(out / "statistics.json", statistics)
    report = _report_contamination(config, inputs.benchmarks, index_folder, tally, found, samples)
    _write_json(out / "decontamination.json", report)
    _remove(parts)
    return statistics["total"] | {"records": records}


def _open_parts(config: CorpusConfig, inputs: CorpusInputs, out: Path) -> Path:
    """The folder of intermediate files for exactly these settings and inputs; removes those of others."""
    files = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for paths in inputs for path in paths]
    identity = json.dumps([config.model_dump(), files], sort_keys=True)
    parts = out / f".parts-{hashlib.blake2b(identity.encode(), digest_size=8).hexdigest()}"
    for other in out.glob(".parts-*"):
        if other != parts:
            shutil.rmtree(other)
    parts.mkdir(exist_ok=True)
    return parts


def _remove(parts: Path) -> None:
    """Rename first: a run killed here must not find half a folder under the old name."""
    waste = parts.with_name(parts.name + ".done")
    parts.replace(waste)
    shutil.rmtree(waste)


def _write_index(config: CorpusConfig, benchmarks: list[Path], parts: Path) -> Path | None:
    """Index of benchmark sentences with the (task, key) pairs of each; None where there is nothing to keep out."""
    if not config.decontaminate.enabled:
        return None
    if not benchmarks:
        log.warning("no benchmark files: nothing is kept out of the corpus; set corpus.benchmarks")
        return None
    folder = parts / INDEX_NAME
    if folder.is_dir():
        return folder
    texts = read_benchmarks(benchmarks)
    index, numbers = build_index([text.text for text in texts], config.decontaminate)
    log.info("%d benchmark sentences from %d files", len(texts), len(benchmarks))
    scratch = folder.with_name(INDEX_NAME + ".partial")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    index.save(scratch)
    _write_json(scratch / ITEMS_NAME, _group_items(texts, numbers), indent=None)
    scratch.replace(folder)
    return folder


def _group_items(texts: list[BenchmarkText], numbers: list[int]) -> list[list[tuple[str, str]]]:
    """For every number of the index the (task, key) pairs that share its text."""
    items: list[list[tuple[str, str]]] = [[] for _ in range(max(numbers) + 1)]
    for text, number in zip(texts, numbers, strict=True):
        if number >= 0:
            items[number].append((text.task, text.key))
    return items


def _sum(counted: list[dict[str, Any]]) -> tuple[Tally, dict[str, Any], Counter[str]]:
    tally, lines, rejected, found = Tally(), Counter[str](), Counter[str](), Counter[str]()
    for counts in counted:
        tally.add(counts["sources"])
        lines.update(counts["lines"])
        rejected.update(counts["rejected"])
        found.update(counts["found"])
    return tally, {**lines, "rejected": dict(sorted(rejected.items()))}, found


def _report_contamination(
    config: CorpusConfig,
    benchmarks: list[Path],
    index_folder: Path | None,
    tally: Tally,
    found: Counter[str],
    samples: Samples,
) -> dict[str, Any]:
    """Per task: benchmark items, those found in the corpus, corpus sentences dropped for them, examples."""
    items = json.loads((index_folder / ITEMS_NAME).read_text("utf-8")) if index_folder else []
    tasks: dict[str, dict[str, Any]] = {}
    for number, pairs in enumerate(items):
        for task, key in pairs:
            row = tasks.setdefault(task, {"items": set(), "found": set()})
            row["items"].add(key)
            if str(number) in found:
                row["found"].add(key)
    for task, row in tasks.items():
        rule = f"{IN_BENCHMARK}:{task}"
        row["items"], row["found"] = len(row["items"]), sorted(row["found"])
        row["dropped_sentences"] = sum(counts[f"{IN_BENCHMARK}.{task}"] for counts in tally.values())
        row["examples"] = [
            {"item": sample.note, "document": sample.document, "sentence": sample.text}
            for sample in samples
            if sample.rule == rule
        ][:EXAMPLES_PER_TASK]
    return {
        "settings": config.decontaminate.model_dump(),
        "benchmarks": name_files(benchmarks),
        "tasks": dict(sorted(tasks.items())),
    }


def _write_json(path: Path, value: Any, indent: int | None = 2) -> None:
    temporary = path.with_name(path.name + ".partial")
    temporary.write_text(json.dumps(value, ensure_ascii=False, indent=indent), "utf-8")
    temporary.replace(path)
