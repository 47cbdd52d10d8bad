"""Members of an ensemble: results in run folders, matched by seed, of the same task and examples.

```
models x settings ─┬─ of one seed, for each seed that all have ─▶ <task>/<name>/[<settings>/]seed-<n>
                   └─ of all these seeds ─────────────────────▶ <task>/<name>-all-seeds/[<settings>/]seed-<lowest>
```
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpus.documents.atomic_files import read_json_object
from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig
from finetune.queue.jobs import SCORES_NAME, Job, folder_name, read_results

log = logging.getLogger(__name__)

ALL_SEEDS = "-all-seeds"
TRAIN = "train again"
SHARED = ("protocol", "split", "n", "own")  # equal for all members, like the examples


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
    found = [
        MemberResult(path.parent, result, out)
        for out in dict.fromkeys(map(Path.resolve, outs))
        for path, result in read_results(out)
        if result["task"] == task and "members" not in result
    ]
    there = sorted({str(one.result["model"]) for one in found})
    for model in models:
        if model not in there:
            raise BadInput(f"{task}: no result of {model}; there are some of {', '.join(there) or 'none'}")
    return [one for one in found if not models or one.result["model"] in models]


def plan_ensembles(found: Sequence[MemberResult], name: str, settings: str = "") -> list[EnsemblePlan]:
    """The ensembles of these results: one for each seed that all models have, and one over those seeds. A single model
    has only the latter. ``BadInput`` if the name is taken."""
    columns: dict[tuple[str, str, str], dict[int, MemberResult]] = {}
    for one in sorted(found, key=lambda one: (*one.column, one.seed)):
        columns.setdefault(one.column, {})[one.seed] = one
    if any(folder_name(name) == folder_name(model) for _, model, _ in columns):
        raise BadInput(f"{name}: a member is called so; give the ensemble another name")
    seeds = sorted(set.intersection(*map(set, columns.values()))) if columns else []
    if left := len(found) - len(columns) * len(seeds):
        log.info("%s: %d of %d results are left out, as not all members have their seeds", name, left, len(found))
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
                found = [MemberResult(folder, read_json_object(folder / SCORES_NAME, TRAIN), out) for folder in folders]
                plans += plan_ensembles(found, name, settings)
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
