"""Which results make an ensemble: found in the folders of runs, matched by seed, held to share task and examples.

```
models x settings ─┬─ of one seed, for each seed that all have ─▶ <task>/<name>/[<settings>/]seed-<n>
                   └─ of all these seeds ─────────────────────▶ <task>/<name>-all-seeds/[<settings>/]seed-<least>
```
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpus.documents.errors import BadInput
from finetune.queue.jobs import folder_name, read_results

log = logging.getLogger(__name__)

ALL_SEEDS = "-all-seeds"
SHARED = ("protocol", "split", "n", "own")  # what members share, beside the examples themselves


@dataclass(frozen=True, slots=True)
class Found:
    """A finished training: the folder of its result, the result, and the run's folder ``finetune`` that holds it."""

    folder: Path
    result: dict[str, Any]
    out: Path

    @property
    def column(self) -> tuple[str, str, str]:
        """What it is but for the seed."""
        return str(self.out), str(self.result["model"]), str(self.result["settings"])

    @property
    def seed(self) -> int:
        return int(self.result["seed"])


@dataclass(frozen=True, slots=True)
class Plan:
    """An ensemble to make: what it is called, and its members in the order of their folders."""

    name: str
    settings: str
    seed: int  # the least, where it is over several
    members: tuple[Found, ...]

    def folder(self, out: Path) -> Path:
        """Where its result goes, as that of a job."""
        task = str(self.members[0].result["task"])
        return out / task / folder_name(self.name) / self.settings / f"seed-{self.seed}"


def find_results(outs: Iterable[Path], task: str, models: Sequence[str] = ()) -> list[Found]:
    """The results of single models for a task, of all ``models`` or those named; ``BadInput`` where one has none."""
    found = [
        Found(path.parent, result, out)
        for out in dict.fromkeys(map(Path.resolve, outs))
        for path, result in read_results(out)
        if result["task"] == task and "members" not in result
    ]
    there = sorted({str(one.result["model"]) for one in found})
    for model in models:
        if model not in there:
            raise BadInput(f"{task}: no result of {model}; there are some of {', '.join(there) or 'none'}")
    return [one for one in found if not models or one.result["model"] in models]


def plan_ensembles(found: Sequence[Found], name: str, settings: str = "") -> list[Plan]:
    """The ensembles of these results: one for each seed that all models have, and one over those seeds. Of a single
    model only the latter; ``BadInput`` where there is nothing to average, or a name that is taken."""
    columns: dict[tuple[str, str, str], dict[int, Found]] = {}
    for one in sorted(found, key=lambda one: (*one.column, one.seed)):
        columns.setdefault(one.column, {})[one.seed] = one
    if any(folder_name(name) == folder_name(model) for _, model, _ in columns):
        raise BadInput(f"{name}: a member is called so; give the ensemble another name")
    seeds = sorted(set.intersection(*map(set, columns.values()))) if columns else []
    said = ", ".join(" ".join(filter(None, column[1:])) for column in columns)
    if len(columns) * len(seeds) < 2:
        seen = f"seed {seeds[0]} alone" if seeds else "no seed that all have"
        raise BadInput(f"{name}: {said or 'no result'}, {seen}; an ensemble needs two results, of one seed or one model")
    if left := sum(map(len, columns.values())) - len(columns) * len(seeds):
        log.info("%s: %d results are left out, as not all of %s have their seeds", name, left, said)
    plans = []
    if len(columns) > 1:
        plans = [Plan(name, settings, seed, tuple(of[seed] for of in columns.values())) for seed in seeds]
    if len(seeds) > 1:
        every = tuple(of[seed] for of in columns.values() for seed in seeds)
        plans.append(Plan(name + ALL_SEEDS, settings, seeds[0], every))
    return plans


def check_alike(members: Sequence[Found]) -> None:
    """``BadInput`` for a member of another task, protocol or split than the first."""
    first = members[0]
    for other in members[1:]:
        for key in ("task", *SHARED):
            mine, theirs = first.result.get(key), other.result.get(key)
            if mine != theirs:
                raise BadInput(
                    f"{other.folder}: {key} {theirs!r:.60}, but {mine!r:.60} in {first.folder}; members of an ensemble "
                    "share task, protocol and scored examples"
                )
