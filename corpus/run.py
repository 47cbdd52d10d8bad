"""The corpus stage: raw text in; document shards, statistics, samples, a data card and a quarantine out.

```
texts ─ clean ─▶ units ─ find repeats ─ decide ─▶ drops ─ assemble ─▶ documents/shard-00000.parquet …
benchmarks ─▶ index ─┘   (by fingerprint)                               statistics.json, README.md …
```
Every arrow is a parallel, resumable map over units. Intermediate files are in a hidden folder that is named by a digest
of settings and inputs. Only its owner can read it, because it contains the secret of the run. It is deleted at the end.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from corpus.assemble import SHARD_NAME, Comparisons, plan_shards, reasons_of_documents, write_drops, write_shard_of
from corpus.audit import AUDIT_NAME, Audit
from corpus.card.page import read_templates
from corpus.card.samples import CHANGED, CHANGED_NAME, DROPPED, DROPPED_NAME, Samples, read_unit_samples, write_samples
from corpus.card.statistics import MAX_SOURCES, OTHER_SOURCES, SourceCounts, counts_in_group, summarize
from corpus.card.write import write_card
from corpus.clean import QUARANTINE_NAME, clean_unit
from corpus.config import CorpusConfig
from corpus.decontamination.benchmarks import CustomTexts
from corpus.decontamination.report import prepare_index, report_contamination
from corpus.documents.atomic_files import link_or_copy, write_json
from corpus.documents.errors import BadInput
from corpus.documents.units import MapUnits, unit_folder
from corpus.documents.units import map_units as map_in_processes
from corpus.duplicates.exact import find_repeats, split_ranges
from corpus.final_check import check_folder
from corpus.noise.remove import rules_except
from corpus.pii.hide import SECRET_NAME, DocumentHider, load_document_hider, load_name_model
from corpus.pii.key import key_fingerprint, load_or_create_secret, read_key
from corpus.quality.boilerplate import find_boilerplate
from corpus.quality.rules import check_names
from corpus.quality.toxicity import SCORES_NAME, load_classifier, score_unit
from corpus.reading.files import name_files
from corpus.reading.inputs import Input, input_state, plan_units, total_bytes
from corpus.reading.read import check_first_records, check_rejected_share, join_quarantine
from corpus.unit_files import DOCUMENTS, IDS, LINES, SENTENCES

log = logging.getLogger(__name__)

WRITTEN = (
    "dropped", "changed", "quarantine", "toxicity",
    "statistics.json", "decontamination.json", "README.md", "card.html",
)  # fmt: skip
"""What the stage writes in addition to the documents; the final check reads all of it."""
MIN_STRICT, MAX_STRICT = 10, 12  # dropped sentences or documents that are worth a warning; lines
STRICT_KINDS = (  # what is dropped, the count of all, rules of the other kind
    ("sentences", "sentences_split", ("duplicate_document",)),
    ("documents", "documents_read", ("no_sentence_left",)),
)


class CorpusInputs(NamedTuple):
    """What to read: results of ``find_inputs`` and ``find_benchmarks``, and texts of custom tasks by their names."""

    texts: list[Input]
    benchmarks: list[Path]
    custom: CustomTexts = MappingProxyType({})

    def benchmark_names(self, hider: DocumentHider) -> list[str]:
        return [hider.hide_in_file_name(name) for name in (*name_files(self.benchmarks), *self.custom)]


def run(
    config: CorpusConfig,
    inputs: CorpusInputs,
    out: Path,
    *,
    workers: int = 1,
    map_units: MapUnits | None = None,
    language: str = "en",
) -> dict[str, Any]:
    """Clean the texts and write ``out/documents``; ``launch`` writes the manifest and skips finished stages.

    Args:
        out: an existing folder, empty or from a killed run.
        workers: processes; the output does not depend on it.
        map_units: an executor of a cluster, instead of processes on this machine.
        language: language of card.html, "en" or "ko".

    Returns:
        counts of the kept "documents", "sentences", "words", "characters" and "bytes", and of everything read, dropped
        and replaced.

    Raises:
        BadInput: no documents were read or kept, or too many records are unreadable.
    """
    check_names(config.quality.rules_off)
    for rules in config.noise_rules_off.values():
        rules_except(tuple(rules))
    if config.toxicity.enabled:
        load_classifier(config.toxicity)  # report errors before the work starts
    if config.pii.mode != "keep":
        load_name_model(config.pii.names)
    check_first_records(inputs.texts)
    stage = _Stage(config, inputs, out, partial(map_units or map_in_processes, workers=workers))
    stage.clean(feed=map_units is None)
    dropped, changed = stage.assemble(*stage.decide_drops())
    statistics = summarize(stage.counts, stage.records)
    write_json(out / "statistics.json", statistics)
    report = report_contamination(
        config.decontaminate, inputs.benchmark_names(stage.hider), stage.index, stage.counts, stage.hits, dropped
    )
    write_json(out / "decontamination.json", report)
    write_card(out, config.model_dump(mode="json"), language)
    if config.pii.mode != "keep":  # assemble has checked the documents
        replacements = {value for sample in [*dropped, *changed] for value in sample.replacements}
        names = [config.model_dump(mode="json"), *statistics["sources"], *read_templates()]
        check_folder(out, WRITTEN, stage.hider, [*stage.folders, *stage.shards], replacements, names, stage.audit)
        write_json(out / AUDIT_NAME, stage.audit.result())
        left = ", ".join(f"{name} {count}" for name, count in sorted(stage.audit.left.items()))
        leaks = f"what may be personal data ({left}); look at the places in {out / AUDIT_NAME}" if left else "nothing"
        log.log(logging.WARNING if left else logging.INFO, "the independent audit found %s", leaks)
    _remove(stage.work)
    return statistics["total"] | {"records": statistics["records"], "audit": dict(stage.audit.left)}


class _Stage:
    """The maps of one run in order, their result folders, and their counts."""

    def __init__(self, config: CorpusConfig, inputs: CorpusInputs, out: Path, do: MapUnits) -> None:
        self.config, self.inputs, self.out, self.do = config, inputs, out, do
        self.work = _open_work_folder(config, inputs, out)
        self.hider = load_document_hider(config, self.work)
        self.index = prepare_index(
            config.decontaminate, inputs.benchmarks, inputs.custom, self.work / "index", self.hider
        )
        self.folders: list[Path] = []
        self.shards: list[Path] = []
        self.counts, self.records, self.hits = SourceCounts(), Counter[str](), Counter[str]()
        self.audit = Audit()

    def map(self, work: Callable[..., Any], units: Any, title: str, **progress: Any) -> tuple[list[Path], list[Any]]:
        folder = self.work / title.replace(" ", "-")
        counts = self.do(work, units, folder, title=title, **progress)
        return [unit_folder(folder, number) for number in range(len(counts))], counts

    def clean(self, *, feed: bool) -> None:
        """Read, clean and count all texts; unreadable records go to the quarantine."""
        texts = self.inputs.texts
        units = plan_units(texts, whole_files=self.config.max_documents_per_file is not None, feed=feed)
        work = partial(clean_unit, config=self.config, index_folder=self.index, private=self.work)
        size = total_bytes(texts)
        self.folders, unit_counts = self.map(work, units, "clean", size_of=attrgetter("size"), total=size)
        lines: Counter[str] = Counter()  # lines per input in the units so far
        unreadable = []
        for folder, counts in zip(self.folders, unit_counts, strict=True):
            self.counts.add(counts["sources"])
            self.records.update(counts["records"])
            self.hits.update(counts["found"])
            unreadable.append((folder / QUARANTINE_NAME, lines[counts["input"]]))
            lines[counts["input"]] += counts["records"].get("lines", 0)
        sources = len(self.counts)
        self.sources = self.counts.group_rare()
        if len(self.sources) < sources:
            small = f"those with less than 1/{MAX_SOURCES} of the documents are written as {OTHER_SOURCES!r}"
            log.warning("%d sources: %s; set corpus.sources.NAME.inputs to name them", sources, small)
        quarantine = join_quarantine(unreadable, self.out)
        rejected, documents = counts_in_group(self.records, "rejected"), self.documents_read()
        with self._discard_on_error():
            check_rejected_share(rejected, documents, self.config.max_bad_share, str(quarantine))
            if not documents:
                raise BadInput(
                    f"no documents in {len(texts)} inputs (unreadable records: {rejected}); check corpus.inputs and "
                    "corpus.text_field"
                )

    @contextmanager
    def _discard_on_error(self) -> Iterator[None]:
        """Bad input is corrected by other settings or files, for which no finished part is of use."""
        try:
            yield
        except BadInput:
            shutil.rmtree(self.work)
            raise

    def documents_read(self) -> int:
        return sum(counts["documents_read"] for counts in self.counts.values())

    def decide_drops(self) -> tuple[list[Path], list[dict[str, Any]]]:
        """Decide which sentences to drop; returns folders and counts per unit."""
        rules = self.config.deduplicate
        documents = self._repeats(DOCUMENTS) if rules.documents else []
        compared = Comparisons(documents, self._repeats(IDS))
        if self.config.toxicity.enabled:
            compared = compared._replace(toxic=self._scores())
        if self.config.quality.enabled:
            reasons = partial(reasons_of_documents, compared=compared)
            compared = compared._replace(lines=self._repeats(LINES, find_boilerplate, reasons=reasons))
        if rules.sentences:
            reasons = partial(reasons_of_documents, compared=compared)
            compared = compared._replace(sentences=self._repeats(SENTENCES, reasons=reasons))
        return self.map(partial(write_drops, compared=compared), list(enumerate(self.folders)), "decide drops")

    def _repeats(self, name: str, find: Callable[..., Any] = find_repeats, **options: Any) -> list[Path]:
        work = partial(find, folders=self.folders, **options)
        return self.map(work, split_ranges(self.folders, name), f"repeats of {name}")[0]

    def _scores(self) -> list[Path]:
        """Toxicity scores per unit, also written to ``out/toxicity``; one process if there is a GPU."""
        from torch.cuda import is_available

        alone = {"workers": 1} if is_available() else {}
        scored, _ = self.map(partial(score_unit, config=self.config.toxicity), self.folders, "toxicity", **alone)
        self._publish("toxicity", "scores-{:05}.parquet", [unit / SCORES_NAME for unit in scored])
        return scored

    def assemble(self, drops: list[Path], drop_counts: list[dict[str, Any]]) -> tuple[Samples, Samples]:
        """Write ``out/documents``, ``out/dropped`` and ``out/changed``; returns the samples of the last two."""
        with self._discard_on_error():
            if not sum(counts["kept"] for counts in drop_counts):
                dropped = summarize(self.counts, self.records)["total"]["dropped_sentences"]
                raise BadInput(
                    f"all {self.documents_read()} documents were dropped (sentences by rule: {dropped}); relax the "
                    "corpus settings"
                )
        shards = plan_shards(self.folders, drops, drop_counts)
        work = partial(write_shard_of, config=self.config, private=self.work, names=self.sources)
        self.shards, shard_counts = self.map(work, shards, "assemble")
        for counts in shard_counts:
            self.counts.add(counts["sources"])
            self.audit.add(counts["audit"] or {})
        _warn_of_strict_rules(self.counts)
        self._publish("documents", "shard-{:05}.parquet", [folder / SHARD_NAME for folder in self.shards])
        return (
            self._join("dropped", [folder / DROPPED_NAME for folder in [*self.folders, *self.shards]], DROPPED),
            self._join("changed", [folder / CHANGED_NAME for folder in self.folders], CHANGED),
        )

    def _publish(self, name: str, pattern: str, files: Iterable[Path]) -> None:
        """Replace a folder of ``out``."""
        shutil.rmtree(self.out / name, ignore_errors=True)
        (self.out / name).mkdir()
        for number, file in enumerate(files):
            link_or_copy(file, self.out / name / pattern.format(number))

    def _join(self, name: str, files: Sequence[Path], columns: tuple[str, ...]) -> Samples:
        samples = Samples(self.config.seed)
        for sample in (sample for file in files for sample in read_unit_samples(file)):
            samples.keep(sample)
        self._publish(name, "", ())
        write_samples(self.out / name / "samples.parquet", list(samples), columns)
        return samples


def _warn_of_strict_rules(counts: SourceCounts) -> None:
    """One line for each rule that dropped more than half of a source."""
    lines = [
        f"source {source}: rule {rule} dropped {dropped:,} of {of[whole]:,} {kind}"
        for source, of in sorted(counts.items())
        for kind, whole, consequences in STRICT_KINDS
        for rule, dropped in sorted(counts_in_group(of, f"dropped_{kind}").items())
        if rule not in consequences and dropped > max(MIN_STRICT, of[whole] / 2)
    ]
    for line in lines[:MAX_STRICT]:
        log.warning("%s; see dropped/samples.parquet and the settings of the rule", line)
    if len(lines) > MAX_STRICT:
        log.warning("%d more rules dropped more than half of a source; see statistics.json", len(lines) - MAX_STRICT)


def _open_work_folder(config: CorpusConfig, inputs: CorpusInputs, out: Path) -> Path:
    """The folder of intermediate files for these settings and inputs; removes folders of other settings."""
    key = read_key(config.pii.key_file, config.pii.key_variable)
    model = sorted(config.pii.names.model.iterdir()) if config.pii.names.model else []
    identity = [
        config.model_dump(mode="json"),
        [(item.name, item.format, item.source, input_state(item)) for item in inputs.texts],
        [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in [*inputs.benchmarks, *model]],
        {task: list(texts) for task, texts in inputs.custom.items()},
        key_fingerprint(key) if key else None,
    ]
    digest = hashlib.blake2b(json.dumps(identity, sort_keys=True).encode(), digest_size=8).hexdigest()
    folder = out / f".work-{digest}"
    for other in out.glob(".work-*"):
        if other != folder:
            shutil.rmtree(other)
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)  # regardless of the umask
    load_or_create_secret(folder / SECRET_NAME)  # before workers need it
    return folder


def _remove(folder: Path) -> None:
    """Delete the folder, the secret first; renamed before, so that a killed run does not resume with half of it."""
    waste = folder.with_name(folder.name + ".done")
    folder.replace(waste)
    (waste / SECRET_NAME).unlink()
    shutil.rmtree(waste)
