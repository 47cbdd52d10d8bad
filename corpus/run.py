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
from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from corpus import samples as sampling
from corpus.assemble import SAMPLES_NAME, SHARD_NAME, plan_shards, write_shard_of
from corpus.audit import SECRET_NAME, load_guard, scan_folder
from corpus.card.page import read_templates
from corpus.card.write import write_card
from corpus.clean import QUARANTINE_NAME, clean_unit
from corpus.config import CorpusConfig
from corpus.decontamination.report import report_contamination, write_index
from corpus.documents.errors import BadInput
from corpus.documents.escaping import visible_json
from corpus.documents.units import map_units as map_in_processes
from corpus.documents.units import unit_folder
from corpus.documents.whole_files import link_or_copy, write_whole
from corpus.drops import Comparisons, find_near, reasons_of_documents, write_drops
from corpus.duplicates.exact import cut_ranges, find_repeats
from corpus.pii.key import kept_secret, key_fingerprint, read_key
from corpus.reading.inputs import Input, stamp
from corpus.reading.read import check_share, join_quarantine
from corpus.reading.units import DAMAGED, plan_units, total_bytes
from corpus.samples import CHANGED_NAME, DROPPED_NAME, Samples, read_samples, write_samples
from corpus.statistics import Tally, describe
from corpus.toxicity import SCORES_NAME, load_classifier, score_unit
from corpus.unit_files import DOCUMENTS, IDS, SENTENCES

log = logging.getLogger(__name__)

MapUnits = Callable[..., list[dict[str, Any]]]

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
    do = partial(map_units or map_in_processes, workers=workers)
    stage = _Stage(config, inputs, out, do, feed=map_units is None)
    cleaned = stage.clean()
    drops, kept = stage.decide_drops()
    if not sum(found["kept"] for found in kept):
        dropped = describe(cleaned.tally, cleaned.records)["total"]["dropped_sentences"]
        raise BadInput(
            f"none of {cleaned.documents} documents is left (dropped: {dropped}); loosen the rules of corpus"
        )
    samples = stage.assemble(drops, kept, cleaned.tally)
    statistics = describe(cleaned.tally, cleaned.records)
    _write_json(out / "statistics.json", statistics)
    report = report_contamination(
        config.decontaminate, inputs.benchmarks, stage.index, cleaned.tally, cleaned.found, samples[0]
    )
    _write_json(out / "decontamination.json", report)
    write_card(out, config.model_dump(mode="json"), language)
    stage.look_again(samples, list(statistics["sources"]))
    _remove(stage.work)
    return statistics["total"] | {"records": statistics["records"]}


class _Cleaned(NamedTuple):
    tally: Tally
    records: dict[str, Any]
    found: Counter[str]
    documents: int


class _Stage:
    """The maps of one run, in order, and the folders that they leave."""

    def __init__(self, config: CorpusConfig, inputs: CorpusInputs, out: Path, do: MapUnits, *, feed: bool) -> None:
        self.config, self.inputs, self.out, self.do, self.feed = config, inputs, out, do, feed
        self.work = _open_work_folder(config, inputs, out)
        self.index = write_index(config.decontaminate, inputs.benchmarks, self.work / "index")
        self.folders: list[Path] = []
        self.shards: list[Path] = []

    def map(self, work: Callable[..., Any], units: Any, title: str, **progress: Any) -> tuple[list[Path], list[Any]]:
        folder = self.work / title.replace(" ", "-")
        counted = self.do(work, units, folder, title=title, **progress)
        return [unit_folder(folder, number) for number in range(len(counted))], counted

    def clean(self) -> _Cleaned:
        """Read, clean and count everything; unreadable records go to the quarantine."""
        units = plan_units(
            self.inputs.texts, whole_files=self.config.max_documents_per_file is not None, feed=self.feed
        )
        work = partial(clean_unit, config=self.config, index_folder=self.index, private=self.work)
        size = total_bytes(self.inputs.texts)
        self.folders, counted = self.map(work, units, "clean", size_of=attrgetter("size"), total=size)
        cleaned = _sum(counted)
        quarantine = join_quarantine(_lines_before(self.folders, counted), self.out)
        if damaged := cleaned.records["rejected"].get(DAMAGED):
            log.warning("%d damaged files were read up to the damage; see %s", damaged, quarantine)
        check_share(cleaned.records["rejected"], cleaned.documents, self.config.max_bad_share, str(quarantine))
        if not cleaned.documents:
            raise BadInput(
                f"no document in {len(self.inputs.texts)} inputs (unreadable: {cleaned.records['rejected']}); check "
                "corpus.inputs and corpus.text_field"
            )
        return cleaned

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
            compared = compared._replace(sentences=self._repeats(SENTENCES, compared))
        return self.map(partial(write_drops, compared=compared), list(enumerate(self.folders)), "decide drops")

    def _repeats(self, name: str, compared: Comparisons | None = None) -> list[Path]:
        work = partial(find_repeats, folders=self.folders)
        if compared:
            work = partial(work, excluded=partial(_is_out, folders=self.folders, compared=compared))
        return self.map(work, cut_ranges(self.folders, name), f"repeats of {name}")[0]

    def _scores(self) -> list[Path]:
        """Toxicity scores by unit, in one process where a GPU does the work; all are kept in ``out/toxicity``."""
        from torch.cuda import is_available

        alone = {"workers": 1} if is_available() else {}
        scored, _ = self.map(partial(score_unit, config=self.config.toxicity), self.folders, "toxicity", **alone)
        folder = self.out / "toxicity"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for number, unit in enumerate(scored):
            link_or_copy(unit / SCORES_NAME, folder / f"scores-{number:05}.parquet")
        return scored

    def assemble(self, drops: list[Path], kept: list[dict[str, Any]], tally: Tally) -> tuple[Samples, Samples]:
        """Write ``out/documents``, ``out/dropped`` and ``out/changed``; returns the samples of the latter two."""
        shards = plan_shards(self.folders, drops, kept, self.config.shard_documents)
        work = partial(write_shard_of, config=self.config, private=self.work)
        self.shards, counted = self.map(work, shards, "assemble")
        for counts in counted:
            tally.add(counts["sources"])
        for name in ("documents", "dropped", "changed"):
            shutil.rmtree(self.out / name, ignore_errors=True)
            (self.out / name).mkdir()
        dropped = self._join([f / DROPPED_NAME for f in self.folders] + [f / SAMPLES_NAME for f in self.shards])
        changed = self._join([folder / CHANGED_NAME for folder in self.folders])
        write_samples(self.out / "dropped" / "samples.parquet", list(dropped), sampling.DROPPED)
        write_samples(self.out / "changed" / "samples.parquet", list(changed), sampling.CHANGED)
        for number, folder in enumerate(self.shards):
            link_or_copy(folder / SHARD_NAME, self.out / "documents" / f"shard-{number:05}.parquet")
        return dropped, changed

    def look_again(self, samples: Sequence[Samples], sources: list[str]) -> None:
        """The last look, at all but the documents, which were read again as they were written."""
        guard = load_guard(self.config, self.work)
        if guard:
            marks = {mark for kind in samples for sample in kind for mark in sample.marks}
            names = [self.config.model_dump(mode="json"), *sources, *read_templates()]
            scan_folder(self.out, WRITTEN, guard, [*self.folders, *self.shards], marks, names)

    def _join(self, files: Sequence[Path]) -> Samples:
        samples = Samples(self.config.samples_per_rule, self.config.seed)
        for file in files:
            for sample in read_samples(file):
                samples.keep(sample)
        return samples


def _is_out(folder: Path, *, folders: Sequence[Path], compared: Comparisons) -> Any:
    return reasons_of_documents(folders.index(folder), folder, compared) != 0


def _open_work_folder(config: CorpusConfig, inputs: CorpusInputs, out: Path) -> Path:
    """The folder of intermediate files for exactly these settings and inputs; removes those of others."""
    key = read_key(config.pii.key_file, config.pii.key_variable)
    identity = [
        config.model_dump(mode="json"),
        [(item.name, item.format, item.source, stamp(item)) for item in inputs.texts],
        [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in inputs.benchmarks],
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


def _sum(counted: Sequence[dict[str, Any]]) -> _Cleaned:
    tally, records, rejected, found = Tally(), Counter[str](), Counter[str](), Counter[str]()
    for counts in counted:
        tally.add(counts["sources"])
        records.update(counts["records"])
        rejected.update(counts["rejected"])
        found.update(counts["found"])
    skipped = {key.removeprefix("skipped."): n for key, n in sorted(records.items()) if key.startswith("skipped.")}
    described = {
        "read": records["records"],
        "empty": records["empty"],
        "skipped": skipped,
        "rejected": dict(sorted(rejected.items())),
    }
    return _Cleaned(tally, described, found, sum(counts["documents_read"] for counts in tally.values()))


def _lines_before(folders: Sequence[Path], counted: Sequence[dict[str, Any]]) -> list[tuple[Path, int]]:
    """Each unit's quarantine, and the lines of the same input that stand in units before it."""
    lines: Counter[str] = Counter()
    parts = []
    for folder, counts in zip(folders, counted, strict=True):
        parts.append((folder / QUARANTINE_NAME, lines[counts["input"]]))
        lines[counts["input"]] += counts["lines"]
    return parts


def _write_json(path: Path, value: Any) -> None:
    write_whole(path, visible_json(json.dumps(value, ensure_ascii=False, indent=2)))
