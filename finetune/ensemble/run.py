"""Ensembles from saved scores of single trainings: no model is run and torch is not imported.

A result folder has the usual format, so report and comparison accept it. It has no hyperparameters, losses or errors.
Members are results in run folders, matched by seed, of the same task and examples; sorted by folder, so that the bytes
do not depend on the order in which they are named:
```
models x settings ─┬─ of one seed, for each seed that all have ─▶ <task>/<name>/[<settings>/]seed-<n>
                   └─ of all these seeds ─────────────────────▶ <task>/<name>-all-seeds/[<settings>/]seed-<lowest>
```
``kept_scores.parquet`` has what an ensemble needs of a training, one row per scored example. Floats keep full
precision: with half of it neighboring values become equal, and an ensemble of one model would differ from the model.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from corpus.documents.atomic_files import atomic_file, read_json_object, write_json
from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig
from finetune.data.files import read_json, write_json_lines
from finetune.examples import Example, Row
from finetune.metrics import figure
from finetune.queue.jobs import PREDICTIONS_NAME, SCORES_NAME, Job, folder_name, iter_results
from finetune.registry import find_task
from finetune.score.bootstrap import SEED, bootstrap
from finetune.score.scores import defined, defined_tables, read_rows
from finetune.task import MemberRecord, MemberRecords, Task

log = logging.getLogger(__name__)

ALL_SEEDS = "-all-seeds"
TRAIN = "train again"
SHARED = ("protocol", "split", "n", "own")  # equal for all members, like the examples
TAKEN = (  # from the first member
    "task", "protocol", "split", "is_official_dev", "n", "bootstrap_samples", "constant", "counting", "counting_by",
    "paper_dev", "data", "own",
)  # fmt: skip
RECORDS_NAME = "kept_scores.parquet"
ABOUT = ("guid", "group")  # columns in addition to those of the records
REMAKE = "delete it and train again with finetune.keep_scores=true"


@dataclass(frozen=True, slots=True)
class MemberResult:
    """A finished training: result folder, result, and the ``finetune`` folder of its run."""

    folder: Path
    result: dict[str, Any]
    out: Path

    @property
    def column(self) -> tuple[str, str, str]:
        """Everything that identifies it except the seed."""
        return str(self.out), str(self.result["model"]), str(self.result["settings"])

    @property
    def seed(self) -> int:
        return int(self.result["seed"])


@dataclass(frozen=True, slots=True)
class EnsemblePlan:
    """An ensemble to make: its name, and its members in the order of their folders."""

    name: str
    settings: str
    seed: int  # the least, where it is over several
    members: tuple[MemberResult, ...]

    def folder(self, out: Path) -> Path:
        """The result folder, as for a job."""
        task = str(self.members[0].result["task"])
        return out / task / folder_name(self.name) / self.settings / f"seed-{self.seed}"


def find_results(outs: Iterable[Path], task: str, models: Sequence[str] = ()) -> list[MemberResult]:
    """Results of single models for a task, of all models or of ``models``; ``BadInput`` if one has no result."""
    results = [
        MemberResult(path.parent, result, out)
        for out in dict.fromkeys(map(Path.resolve, outs))
        for path, result in iter_results(out)
        if result["task"] == task and "members" not in result
    ]
    there = sorted({str(one.result["model"]) for one in results})
    for model in models:
        if model not in there:
            raise BadInput(f"{task}: no result of {model}; results here: {', '.join(there) or 'none'}")
    return [one for one in results if not models or one.result["model"] in models]


def plan_ensembles(results: Sequence[MemberResult], name: str, settings: str = "") -> list[EnsemblePlan]:
    """The ensembles of these results: one for each seed that all models have, and one over those seeds. A single model
    has only the latter. ``BadInput`` if the name is taken."""
    columns: dict[tuple[str, str, str], dict[int, MemberResult]] = {}
    for one in sorted(results, key=lambda one: (*one.column, one.seed)):
        columns.setdefault(one.column, {})[one.seed] = one
    if any(folder_name(name) == folder_name(model) for _, model, _ in columns):
        raise BadInput(f"{name}: a member is called so; give the ensemble another name")
    seeds = sorted(set.intersection(*map(set, columns.values()))) if columns else []
    if left := len(results) - len(columns) * len(seeds):
        log.info("%s: %d of %d results are left out, as not all members have their seeds", name, left, len(results))
    plans = []
    if len(columns) > 1:
        plans = [EnsemblePlan(name, settings, seed, tuple(of[seed] for of in columns.values())) for seed in seeds]
    if len(seeds) > 1:
        every = tuple(of[seed] for of in columns.values() for seed in seeds)
        plans.append(EnsemblePlan(name + ALL_SEEDS, settings, seeds[0], every))
    return plans


def plan_recipe(config: FinetuneConfig, jobs: Sequence[Job], out: Path) -> list[EnsemblePlan]:
    """The ensembles of a recipe, from its finished jobs below ``out``."""
    plans = []
    for name, ensemble in config.ensembles.items():
        for task in config.tasks:
            own = [job for job in jobs if job.task == task and job.model in (ensemble.models or config.models)]
            apart = dict.fromkeys(job.settings for job in own) if ensemble.settings is None else {"": None}
            for settings in apart:
                wanted = {settings} if ensemble.settings is None else {*ensemble.settings}
                folders = [job.folder(out) for job in own if job.settings in wanted]
                results = [MemberResult(f, read_json_object(f / SCORES_NAME, TRAIN), out) for f in folders]
                plans += plan_ensembles(results, name, settings)
    return plans


def check_alike(members: Sequence[MemberResult]) -> None:
    """``BadInput`` for a member with another task, protocol or split than the first."""
    first = members[0]
    for other in members[1:]:
        for key in ("task", *SHARED):
            mine, theirs = first.result.get(key), other.result.get(key)
            if mine != theirs:
                raise BadInput(
                    f"{other.folder}: {key} {theirs!r:.60}, but {mine!r:.60} in {first.folder}; members of an ensemble "
                    "share task, protocol and scored examples"
                )


def make_ensembles(plans: Sequence[EnsemblePlan], out: Path) -> list[dict[str, Any]]:
    """Make these ensembles below ``out``; tasks that keep no scores are skipped with a warning."""
    made = []
    for plan in plans:
        if _task_of(plan.members).ensembling is None:
            log.warning("%s: %s", plan.name, _keeps_none(plan.members))
            continue
        made.append(result := make_ensemble(plan, out))
        value = figure(result["scores"][result["headline"]])
        who = f"{result['task']}, {plan.name}, seed {plan.seed}"
        log.info("%s: %d members, %s %s", who, len(plan.members), result["headline"], value)
    return made


def _task_of(members: Sequence[MemberResult]) -> Task:
    return find_task(str(members[0].folder)).with_protocol(members[0].result["protocol"])


def _keeps_none(members: Sequence[MemberResult]) -> str:
    first = members[0].result
    return f"{first['task']} keeps no scores under protocol {first['protocol']}, so there are no ensembles of it"


def make_ensemble(plan: EnsemblePlan, out: Path) -> dict[str, Any]:
    """Make the ensemble below ``out`` unless it exists with the same members; returns the content of its
    ``scores.json``. ``BadInput`` if members do not match or have no saved scores."""
    members, folder = plan.members, plan.folder(out)
    check_alike(members)
    decides = json.dumps([[one.result["fingerprint"], one.result["bootstrap_samples"]] for one in members])
    fingerprint = hashlib.blake2b(decides.encode(), digest_size=16).hexdigest()
    if (folder / SCORES_NAME).is_file():
        there = read_json(folder / SCORES_NAME)
        if "members" not in there:
            raise BadInput(f"{folder}: a training has its result here; give the ensemble another name")
        if there["fingerprint"] == fingerprint:
            return dict(there)
    began = time.perf_counter()
    task = _task_of(members)
    rows, groups = merge_members(task, members)
    (folder / SCORES_NAME).unlink(missing_ok=True)
    write_json_lines(folder / PREDICTIONS_NAME, (row._asdict() for row in rows), private=bool(task.custom))
    result = {
        **_result(task, plan, rows, groups), "seconds": round(time.perf_counter() - began, 1),
        "fingerprint": fingerprint,
    }  # fmt: skip
    write_json(folder / SCORES_NAME, result)
    return dict(read_json(folder / SCORES_NAME))


def merge_members(task: Task, members: Sequence[MemberResult]) -> tuple[list[Row], list[str]]:
    """The rows of the ensemble's predictions file and the group of each, in the order of the first member."""
    if task.ensembling is None:
        raise BadInput(_keeps_none(members))
    first = read_rows(members[0].folder / PREDICTIONS_NAME)
    guids = [row.guid for row in first]
    groups = [task.group_of_guid(guid) for guid in guids]
    records: list[MemberRecords] = []
    for member in members:
        rows = {row.guid: row for row in read_rows(member.folder / PREDICTIONS_NAME)}
        if set(rows) != set(guids) or any(rows[row.guid].gold != row.gold for row in first):
            raise BadInput(f"{member.folder}: scored on other examples than {members[0].folder}, or on other golds")
        if task.ensembling.to_records is None:
            records.append([{"prediction": rows[guid].prediction, "scores": rows[guid].scores} for guid in guids])
        else:
            path = member.folder / RECORDS_NAME
            if not path.is_file():
                raise BadInput(f"{path}: missing; run its recipe again with finetune.keep_scores=true, which trains it")
            own, groups = read_records(path, guids)
            records.append(own)
    try:
        merged = task.ensembling.merge(records)
    except (LookupError, TypeError, ValueError) as error:
        raise BadInput(
            f"{members[0].folder} and {len(members) - 1} more: their kept scores do not fit {task.name} "
            f"({type(error).__name__}: {error!s:.100}); train again with finetune.keep_scores=true"
        ) from None
    return [Row(row.guid, row.gold, *prediction) for row, prediction in zip(first, merged, strict=True)], groups


def _result(task: Task, plan: EnsemblePlan, rows: Sequence[Row], groups: Sequence[str]) -> dict[str, Any]:
    """The content of ``scores.json`` for an ensemble."""
    results = [member.result for member in plan.members]
    first = results[0]
    scores = task.score(rows)
    recipe = {k: v for k, v in first["recipe"].items() if all(r["recipe"].get(k) == v for r in results)}
    several = len({member.out for member in plan.members}) > 1
    return {
        "model": plan.name, "settings": plan.settings, "seed": plan.seed,
        **{key: first[key] for key in TAKEN if key in first},
        "n_train": min(result["n_train"] for result in results),
        "headline": next(iter(scores)), "scores": defined(scores),
        "intervals": bootstrap(task, rows, groups, first["bootstrap_samples"], SEED),
        "tables": defined_tables(task.inspection.tables(rows)),
        "members": [
            {
                **({"run": member.out.parent.name} if several else {}),
                **{key: member.result[key] for key in ("model", "settings", "seed", "fingerprint")},
                "scores": member.result["scores"],
            }
            for member in plan.members
        ],
        "selected": next((result["selected"] for result in results if result["selected"]), None), "tuned": None,
        "hyperparameters": {}, "losses": [], "recipe": recipe, "revision": task.revision,
    }  # fmt: skip


def write_records(
    path: Path, examples: Sequence[Example], group: Callable[[Example], str], records: Sequence[MemberRecord]
) -> None:
    """Write one row per example, atomically; ``group`` is ``Task.group``, stored as a number."""
    numbers: dict[str, int] = {}
    columns: dict[str, pa.Array] = {
        "guid": pa.array([example.guid for example in examples], pa.string()),
        "group": pa.array([numbers.setdefault(group(e), len(numbers)) for e in examples], pa.int32()),
        **{name: pa.array([record[name] for record in records]) for name in records[0]},
    }
    lists = {name: column.type.value_type for name, column in columns.items() if pa.types.is_list(column.type)}
    floats = [f"{name}.list.element" for name, kind in lists.items() if pa.types.is_floating(kind)]
    with atomic_file(path) as temporary:
        pq.write_table(
            pa.table(columns), temporary, compression="zstd", use_dictionary=False,
            use_byte_stream_split=floats or False, write_statistics=False,
        )  # fmt: skip


def read_records(path: Path, guids: Sequence[str]) -> tuple[list[MemberRecord], list[str]]:
    """The records of the examples ``guids`` in this order, and the group of each; ``BadInput`` if the file does not
    have exactly these examples."""
    try:
        with pq.ParquetFile(path) as file:
            rows = file.metadata.num_rows
            table = file.read() if rows == len(guids) and set(ABOUT) < set(file.schema_arrow.names) else None
    except (pa.ArrowException, OSError) as error:
        raise BadInput(f"{path}: not readable ({str(error)[:100]}); {REMAKE}") from None
    place = {} if table is None else {guid: row for row, guid in enumerate(table["guid"].to_pylist())}
    if table is None or set(place) != set(guids):
        raise BadInput(f"{path}: {rows:,} rows do not match the {len(guids):,} predictions of this result; {REMAKE}")
    order = [place[guid] for guid in guids]
    columns = {name: table[name].to_numpy() for name in table.column_names if name not in ABOUT}
    groups = [str(number) for number in table["group"].to_pylist()]
    return [{name: values[row] for name, values in columns.items()} for row in order], [groups[row] for row in order]
