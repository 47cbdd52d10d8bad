"""The corpus stage: raw text to document shards, statistics, samples of what was dropped or changed, and a quarantine.

```
texts ─ clean ─▶ units ─ find repeats ─ decide ─▶ drops ─ assemble ─▶ documents/shard-00000.parquet …
benchmarks ─▶ index ─┘   (by fingerprint)                               statistics.json, README.md …
```
Every arrow is a parallel map over units that can be killed and resumed. Its intermediate files live in a hidden folder
named by the settings and inputs they were made from, so other settings never meet them. It is its owner's alone, for it
holds the run's secret and fingerprints of the text as it was; it goes at the end, when all that was written has been
read again and found free of personal data.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from corpus.assemble import SHARD_NAME, plan_shards, write_shard_of
from corpus.audit import SECRET_NAME, load_guard, load_people, scan_folder
from corpus.card.page import read_templates
from corpus.card.samples import CHANGED, CHANGED_NAME, DROPPED, DROPPED_NAME, Samples, take_samples, write_samples
from corpus.card.statistics import Tally, describe, group_of
from corpus.card.write import write_card
from corpus.clean import QUARANTINE_NAME, clean_unit
from corpus.config import CorpusConfig
from corpus.decontamination.report import report_contamination, write_index
from corpus.documents.atomic_files import atomic_write, link_or_copy
from corpus.documents.errors import BadInput
from corpus.documents.escaping import escape_json
from corpus.documents.units import MapUnits, unit_folder
from corpus.documents.units import map_units as map_in_processes
from corpus.drops import Comparisons, find_near, reasons_of_documents, write_drops
from corpus.duplicates.exact import cut_ranges, find_repeats
from corpus.pii.key import kept_secret, key_fingerprint, read_key
from corpus.quality.toxicity import SCORES_NAME, load_classifier, score_unit
from corpus.reading.inputs import Input, stamp
from corpus.reading.read import check_share, join_quarantine
from corpus.reading.units import DAMAGED, plan_units, total_bytes
from corpus.unit_files import DOCUMENTS, IDS, SENTENCES

log = logging.getLogger(__name__)

WRITTEN = (
    "dropped", "changed", "quarantine", "toxicity",
    "statistics.json", "decontamination.json", "README.md", "card.html",
)  # fmt: skip
"""What the stage writes beside the documents, all of it looked at again."""


class CorpusInputs(NamedTuple):
    """What to read, as ``find_inputs`` and ``find_benchmarks`` expand patterns to it."""

    texts: list[Input]
    benchmarks: list[Path]


def run(
    config: CorpusConfig,
    inputs: CorpusInputs,
    out: Path,
    *,
    workers: int = 1,
    map_units: MapUnits | None = None,
    language: str = "en",
) -> dict[str, Any]:
    """Clean the texts into ``out/documents``; see ``launch`` for manifest and skipping.

    Args:
        out: existing folder, empty or left by a killed run.
        workers: processes; the output does not depend on it.
        map_units: a cluster's engine, in place of processes on this machine.
        language: of card.html.

    Returns:
        counts: "documents", "sentences", "words", "characters", "bytes" kept, and what was read, dropped, replaced.

    Raises:
        BadInput: no document in or out, too many unreadable records.
    """
    if config.toxicity.enabled:
        load_classifier(config.toxicity)  # what is wrong with it is told before the work
    if config.pii.mode != "keep":
        load_people(config.pii.names)
    stage = _Stage(config, inputs, out, partial(map_units or map_in_processes, workers=workers))
    stage.clean(feed=map_units is None)
    dropped, changed = stage.assemble(*stage.decide_drops())
    statistics = describe(stage.tally, stage.records)
    _write_json(out / "statistics.json", statistics)
    report = report_contamination(
        config.decontaminate, inputs.benchmarks, stage.index, stage.tally, stage.found, dropped
    )
    _write_json(out / "decontamination.json", report)
    write_card(out, config.model_dump(mode="json"), language)
    if guard := load_guard(config, stage.work):  # the documents were read again as they were written
        marks = {mark for sample in [*dropped, *changed] for mark in sample.marks}
        names = [config.model_dump(mode="json"), *statistics["sources"], *read_templates()]
        scan_folder(out, WRITTEN, guard, [*stage.folders, *stage.shards], marks, names)
    _remove(stage.work)
    return statistics["total"] | {"records": statistics["records"]}


class _Stage:
    """The maps of one run, in order, the folders that they leave, and what was counted."""

    def __init__(self, config: CorpusConfig, inputs: CorpusInputs, out: Path, do: MapUnits) -> None:
        self.config, self.inputs, self.out, self.do = config, inputs, out, do
        self.work = _open_work_folder(config, inputs, out)
        self.index = write_index(config.decontaminate, inputs.benchmarks, self.work / "index")
        self.folders: list[Path] = []
        self.shards: list[Path] = []
        self.tally, self.records, self.found = Tally(), Counter[str](), Counter[str]()

    def map(self, work: Callable[..., Any], units: Any, title: str, **progress: Any) -> tuple[list[Path], list[Any]]:
        folder = self.work / title.replace(" ", "-")
        counted = self.do(work, units, folder, title=title, **progress)
        return [unit_folder(folder, number) for number in range(len(counted))], counted

    def clean(self, *, feed: bool) -> None:
        """Read, clean and count everything; unreadable records go to the quarantine."""
        texts = self.inputs.texts
        units = plan_units(texts, whole_files=self.config.max_documents_per_file is not None, feed=feed)
        work = partial(clean_unit, config=self.config, index_folder=self.index, private=self.work)
        size = total_bytes(texts)
        self.folders, counted = self.map(work, units, "clean", size_of=attrgetter("size"), total=size)
        lines: Counter[str] = Counter()  # of each input, in the units so far
        unreadable = []
        for folder, counts in zip(self.folders, counted, strict=True):
            self.tally.add(counts["sources"])
            self.records.update(counts["records"])
            self.found.update(counts["found"])
            unreadable.append((folder / QUARANTINE_NAME, lines[counts["input"]]))
            lines[counts["input"]] += counts["records"].get("lines", 0)
        quarantine = join_quarantine(unreadable, self.out)
        rejected, documents = group_of(self.records, "rejected"), self.documents_read()
        if damaged := rejected.get(DAMAGED):
            log.warning("%d damaged files were read up to the damage; see %s", damaged, quarantine)
        check_share(rejected, documents, self.config.max_bad_share, str(quarantine))
        if not documents:
            raise BadInput(
                f"no document in {len(texts)} inputs (unreadable: {rejected}); check corpus.inputs and "
                "corpus.text_field"
            )

    def documents_read(self) -> int:
        return sum(counts["documents_read"] for counts in self.tally.values())

    def decide_drops(self) -> tuple[list[Path], list[dict[str, Any]]]:
        """What stays, by unit."""
        rules = self.config.deduplicate
        documents = self._repeats(DOCUMENTS) if rules.documents else []
        compared = Comparisons(documents, self._repeats(IDS))
        if rules.near.enabled:
            [near], _ = self.map(partial(find_near, config=rules.near), [self.folders], "near duplicates")
            compared = compared._replace(near=near)
        if self.config.toxicity.enabled:
            compared = compared._replace(toxic=self._scores())
        if rules.sentences:
            excluded = partial(_is_out, folders=self.folders, compared=compared)
            compared = compared._replace(sentences=self._repeats(SENTENCES, excluded=excluded))
        return self.map(partial(write_drops, compared=compared), list(enumerate(self.folders)), "decide drops")

    def _repeats(self, name: str, **options: Any) -> list[Path]:
        work = partial(find_repeats, folders=self.folders, **options)
        return self.map(work, cut_ranges(self.folders, name), f"repeats of {name}")[0]

    def _scores(self) -> list[Path]:
        """Toxicity scores by unit, in one process where a GPU does the work; all are kept in ``out/toxicity``."""
        from torch.cuda import is_available

        alone = {"workers": 1} if is_available() else {}
        scored, _ = self.map(partial(score_unit, config=self.config.toxicity), self.folders, "toxicity", **alone)
        self._publish("toxicity", "scores-{:05}.parquet", [unit / SCORES_NAME for unit in scored])
        return scored

    def assemble(self, drops: list[Path], kept: list[dict[str, Any]]) -> tuple[Samples, Samples]:
        """Write ``out/documents``, ``out/dropped`` and ``out/changed``; returns the samples of the latter two."""
        if not sum(found["kept"] for found in kept):
            dropped = describe(self.tally, self.records)["total"]["dropped_sentences"]
            raise BadInput(
                f"none of {self.documents_read()} documents is left (dropped: {dropped}); loosen the rules of corpus"
            )
        shards = plan_shards(self.folders, drops, kept, self.config.shard_documents)
        work = partial(write_shard_of, config=self.config, private=self.work)
        self.shards, counted = self.map(work, shards, "assemble")
        for counts in counted:
            self.tally.add(counts["sources"])
        self._publish("documents", "shard-{:05}.parquet", [folder / SHARD_NAME for folder in self.shards])
        return (
            self._join("dropped", [folder / DROPPED_NAME for folder in [*self.folders, *self.shards]], DROPPED),
            self._join("changed", [folder / CHANGED_NAME for folder in self.folders], CHANGED),
        )

    def _publish(self, name: str, pattern: str, files: Iterable[Path]) -> None:
        """Fill a folder of ``out`` anew."""
        shutil.rmtree(self.out / name, ignore_errors=True)
        (self.out / name).mkdir()
        for number, file in enumerate(files):
            link_or_copy(file, self.out / name / pattern.format(number))

    def _join(self, name: str, files: Sequence[Path], columns: tuple[str, ...]) -> Samples:
        samples = Samples(self.config.seed)
        for sample in (sample for file in files for sample in take_samples(file)):
            samples.keep(sample)
        self._publish(name, "", ())
        write_samples(self.out / name / "samples.parquet", list(samples), columns)
        return samples


def _is_out(folder: Path, *, folders: Sequence[Path], compared: Comparisons) -> Any:
    return reasons_of_documents(folders.index(folder), folder, compared) != 0


def _open_work_folder(config: CorpusConfig, inputs: CorpusInputs, out: Path) -> Path:
    """The folder of intermediate files for exactly these settings and inputs; removes those of others."""
    key = read_key(config.pii.key_file, config.pii.key_variable)
    model = sorted(config.pii.names.model.iterdir()) if config.pii.names.model else []
    identity = [
        config.model_dump(mode="json"),
        [(item.name, item.format, item.source, stamp(item)) for item in inputs.texts],
        [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in [*inputs.benchmarks, *model]],
        key_fingerprint(key) if key else None,
    ]
    digest = hashlib.blake2b(json.dumps(identity, sort_keys=True).encode(), digest_size=8).hexdigest()
    folder = out / f".work-{digest}"
    for other in out.glob(".work-*"):
        if other != folder:
            shutil.rmtree(other)
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)  # regardless of the umask
    kept_secret(folder / SECRET_NAME)  # before any work is handed out
    return folder


def _remove(folder: Path) -> None:
    """Rename first: a run killed here must not find half a folder under the old name. Then the secret goes first."""
    waste = folder.with_name(folder.name + ".done")
    folder.replace(waste)
    (waste / SECRET_NAME).unlink()
    shutil.rmtree(waste)


def _write_json(path: Path, value: Any) -> None:
    atomic_write(path, escape_json(json.dumps(value, ensure_ascii=False, indent=2)))
