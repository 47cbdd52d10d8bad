"""Two models on the same tasks: which differences are significant, and how many seeds the others would need.

Both models are resampled alike (an interval and p over seeds and examples), and their predictions are swapped (p over
examples). Tests made together are corrected together (Holm): the first metrics of all tasks and pairs are one family,
the second metrics another.

A result is a task and a model with all its seeds, and their predictions. The seeds of a model must have been trained
and scored alike; differences are refused before anything is computed.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from corpus.documents.errors import BadInput
from finetune.data.files import find_file, read_json
from finetune.examples import Row
from finetune.queue.jobs import PREDICTIONS_NAME, SCORES_NAME
from finetune.registry import find_task
from finetune.score.bootstrap import RESAMPLES, SHUFFLES, randomize, resample
from finetune.score.scores import read_rows, spelled
from finetune.score.significance import ALPHA, EXAMPLES_ONLY, Difference, Estimate, Sample, differ, estimate, holm
from finetune.task import Task
from finetune.task_names import sort_key

log = logging.getLogger(__name__)

MAX_TIMES = 100  # the examples that a verdict asks for; beyond, the difference is next to nothing
DEFAULTS = {"revision": 1}  # of results that do not say
OWN_MODEL = "model"  # the model of the run comes first


@dataclass(frozen=True, slots=True)
class Trained:
    """One task and model, with its settings: for each seed the folder (or predictions file) and its ``scores.json``."""

    task: str
    name: str  # ``model``, or ``model, slow`` with named settings
    results: tuple[tuple[Path, dict[str, Any]], ...]

    @property
    def first(self) -> dict[str, Any]:
        return self.results[0][1]

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(int(result["seed"]) for _, result in self.results)

    @property
    def is_selected(self) -> bool:
        """Whether weights or settings were selected by their score on the scored examples."""
        return any(result.get("selected") or result.get("searched_on") == "dev" for _, result in self.results)


Pair = tuple[Trained, Trained]


def find_trained(folder: Path) -> list[Trained]:
    """All results below a folder, tasks in the paper's order, the run's own model first.

    ``BadInput`` if there are none, or the seeds of one model were not trained alike.
    """
    home = folder / "finetune" if (folder / "finetune").is_dir() else folder
    by_model: dict[tuple[str, str], list[tuple[Path, dict[str, Any]]]] = {}
    for path in sorted(home.rglob(SCORES_NAME)):
        result = read_json(path)
        if not isinstance(result, dict) or not {"task", "model", "seed", "protocol", "split"} <= result.keys():
            raise BadInput(f"{path}: not the scores.json of a result; delete {path.parent} and run again")
        name = ", ".join(filter(None, (result["model"], result.get("settings"))))
        by_model.setdefault((result["task"], name), []).append((path.parent, result))
    if not by_model:
        raise BadInput(f"{folder}: no results (scores.json) in it; give the folder of a run that was fine-tuned")
    trained = [
        Trained(task, name, tuple(sorted(results, key=lambda item: int(item[1]["seed"]))))
        for (task, name), results in by_model.items()
    ]
    for one in trained:
        _refuse_mixed(one)
    return sorted(trained, key=lambda one: (sort_key(one.task), one.first["model"] != OWN_MODEL, one.name))


def trained_of_file(path: Path, task: str) -> Trained:
    """A predictions file with golds, as a model with one seed and no further information."""
    about = {"seed": 0, "protocol": None, "split": None, "task_of": task}
    return Trained(find_task(task).name, str(path), ((path, about),))


def _refuse_mixed(one: Trained) -> None:
    for key in ("seed", "protocol", "split", "encoder", "recipe", "revision"):
        values = [result.get(key, DEFAULTS.get(key)) for _, result in one.results]
        if key == "seed" and len(set(map(str, values))) < len(values):
            raise BadInput(f"{one.results[0][0]}: {one.task} of {one.name} has a seed twice; give one folder")
        if key != "seed" and any(value != values[0] for value in values):
            raise BadInput(
                f"{one.results[0][0].parent}: the seeds of {one.name} on {one.task} differ in {key}; fine-tune all of "
                "them again with one recipe, or delete the old ones"
            )


@dataclass(frozen=True, slots=True)
class Loaded:
    """The predictions of a model: rows of each training seed, sorted by guid."""

    trained: Trained
    task: Task
    rows: dict[int, list[Row]]

    @property
    def guids(self) -> list[str]:
        return [row.guid for row in next(iter(self.rows.values()))]


def load(trained: Trained) -> Loaded:
    """Read all predictions; ``BadInput`` for a missing or broken file, or seeds scored on other examples."""
    place = trained.results[0][0]
    task = find_task(trained.first.get("task_of") or (str(place) if trained.first.get("own") else trained.task))
    places = {seed: place for seed, (place, _) in zip(trained.seeds, trained.results, strict=True)}
    files = {seed: place if place.is_file() else place / PREDICTIONS_NAME for seed, place in places.items()}
    rows = {s: sorted(spelled(task, read_rows(file, task))[0], key=lambda row: row.guid) for s, file in files.items()}
    loaded = Loaded(trained, task, rows)
    for seed, own in rows.items():
        _refuse_others(rows[trained.seeds[0]], own, f"{trained.name}, seed {trained.seeds[0]}", f"seed {seed}", task)
    return loaded


def refuse_incomparable(a: Loaded, b: Loaded) -> None:
    """``BadInput`` if two models were not scored on the same examples under the same protocol."""
    one, other = a.trained, b.trained
    for key in ("protocol", "split"):
        values = one.first.get(key), other.first.get(key)
        if None not in values and values[0] != values[1]:
            raise BadInput(
                f"{one.task}: {one.name} and {other.name} have another {key} ({values[0]}; {values[1]}), so their "
                "scores do not compare; score both alike"
            )
    first, second = (next(iter(loaded.rows.values())) for loaded in (a, b))
    _refuse_others(first, second, one.name, other.name, a.task)


def _refuse_others(first: Sequence[Row], second: Sequence[Row], one: str, other: str, task: Task) -> None:
    guids = [{row.guid for row in rows} for rows in (first, second)]
    if guids[0] != guids[1]:
        raise BadInput(
            f"{task.name}: {one} and {other} were scored on other examples ({len(guids[0]):,} and {len(guids[1]):,}, "
            f"{len(guids[0] & guids[1]):,} of them the same); score both on the same file"
        )
    if differing := [x.guid for x, y in zip(first, second, strict=True) if x.gold != y.gold]:
        raise BadInput(
            f"{task.name}: {one} and {other} have other golds for {len(differing):,} examples ({differing[0]} is the "
            "first); score both on the same version of the data"
        )


def passages_of(task: Task, data: Path | None) -> Callable[[str], str] | None:
    """Guid to group from the official files below ``data``; None without files, or if guids are enough."""
    if data is None or task.custom is not None or task.group_of_guid is not str:
        return None
    files = [path for name in (task.files.dev, task.files.train) if (path := find_file(data, name)) is not None]
    groups = _groups_of_files(task.name, tuple(files))
    return lambda guid: groups.get(guid, guid)


@lru_cache(maxsize=8)
def _groups_of_files(name: str, files: Iterable[Path]) -> dict[str, str]:
    task = find_task(name)
    return {example.guid: task.group(example) for path in files for example in task.read(path)}


@dataclass(frozen=True, slots=True)
class Tested:
    """One metric of one task for two models; ``difference`` is b - a, None if a score is undefined.

    Fields:
        p, test: the deciding test; ``p_examples``: approximate randomization over examples.
        p_holm: corrected for all tests of the family.
    """

    task: str
    metric: str
    rank: int  # of the metric in its task, 0 the headline
    names: tuple[str, str]
    estimates: tuple[Estimate, Estimate]
    n: int
    groups: int
    difference: Difference | None
    p: float | None
    p_examples: float | None
    p_holm: float | None = None
    family: int = 1

    @property
    def is_real(self) -> bool:
        return self.p_holm is not None and self.p_holm <= ALPHA

    @property
    def test(self) -> str:
        return self.difference.test if self.difference else ""

    def seeds_needed(self) -> int | None:
        """As ``Difference.seeds_needed``, at the level that Holm requires of the first of the family."""
        return self.difference.seeds_needed(ALPHA / self.family) if self.difference else None

    def verdict(self) -> str:
        """The result in words."""
        difference = self.difference
        if difference is None or self.p_holm is None:
            return "undefined"
        has_seeds = difference.seed_variance is not None
        if self.is_real:
            return f"real{'' if has_seeds else ' for these two trainings'}: {'ab'[difference.value > 0]} is better"
        if not difference.value:
            return "not shown; no difference at all"
        if not has_seeds:
            return "not shown; train both with 3 or more seeds"
        if (needed := self.seeds_needed()) is not None:
            there = min(estimate.seeds for estimate in self.estimates)  # they might have been enough, by power
            return f"not shown; {max(needed, there + 1):,} seeds would be needed"
        if (shown := difference.seeds_to_show(ALPHA / self.family)) is not None:
            return f"not shown; {shown:,} seeds would show it if the difference stays the same"
        times = difference.examples_needed(ALPHA / self.family)
        if times <= 1:
            return "not shown; more than 1,000 seeds would be needed"
        if times >= MAX_TIMES:
            return f"not shown; neither more seeds nor {MAX_TIMES} times the examples would show it"
        return f"not shown; more seeds do not help, {times:,.{0 if times >= 10 else 1}f} times the examples would"

    def as_json(self) -> dict[str, Any]:
        """The same as plain values."""
        sides = {
            side: {"name": name, **estimate._asdict()}
            for side, name, estimate in zip("ab", self.names, self.estimates, strict=True)
        }
        difference = self.difference
        return {
            "task": self.task, "metric": self.metric, "n": self.n, "groups": self.groups, **sides,
            "difference": difference and difference.value, "interval": difference and difference.interval,
            "test": self.test, "p": self.p, "p_examples": self.p_examples, "p_holm": self.p_holm,
            "tests_in_family": self.family, "is_real": self.is_real, "seeds_needed": self.seeds_needed(),
            "verdict": self.verdict(),
        }  # fmt: skip


def compare(
    pairs: Sequence[Pair], data: Path | None = None, samples: int = RESAMPLES, shuffles: int = SHUFFLES
) -> list[Tested]:
    """All metrics of the paper (all metrics of a custom task) for each pair; ``BadInput`` if two models are not
    comparable.

    Args:
        data: folder of official files, for the passages of KLUE-MRC.
        shuffles: of the randomization; 0: only if it decides, because each model has one seed.
    """
    cache: dict[int, tuple[Loaded, dict[str, Sample], list[str]]] = {}

    def sampled(one: Trained) -> tuple[Loaded, dict[str, Sample], list[str]]:
        if id(one) not in cache:
            loaded = load(one)
            group_of = passages_of(loaded.task, data) or loaded.task.group_of_guid
            groups = [group_of(guid) for guid in loaded.guids]
            cache[id(one)] = loaded, resample(loaded.task, loaded.rows, groups, samples), groups
        return cache[id(one)]

    tested = []
    for a, b in pairs:
        (loaded_a, sample_a, groups), (loaded_b, sample_b, _) = sampled(a), sampled(b)
        refuse_incomparable(loaded_a, loaded_b)
        wants = shuffles or (SHUFFLES if len(a.seeds) == len(b.seeds) == 1 else 0)
        p_examples: Mapping[str, float] = {}
        if wants and len(loaded_a.rows) == len(loaded_b.rows):  # seeds of the same rank are swapped with each other
            seeds = zip(sorted(loaded_a.rows), sorted(loaded_b.rows), strict=True)
            swapped = [(loaded_a.rows[x], loaded_b.rows[y]) for x, y in seeds]
            p_examples = randomize(loaded_a.task, swapped, groups, wants)
        metrics = loaded_a.task.metrics or tuple(sample_a)
        for rank, metric in enumerate(metrics):
            both = sample_a[metric], sample_b[metric]
            tested.append(_test(a, b, metric, rank, both, len(groups), p_examples.get(metric)))
    return _adjust(tested)


def _test(
    a: Trained, b: Trained, metric: str, rank: int, both: tuple[Sample, Sample], n: int, p_examples: float | None
) -> Tested:
    difference = differ(*both)
    p_examples = None if p_examples is None or math.isnan(p_examples) else p_examples
    p = None if difference is None else p_examples if difference.test == EXAMPLES_ONLY else difference.p
    estimates = estimate(both[0], metric), estimate(both[1], metric)
    return Tested(a.task, metric, rank, (a.name, b.name), estimates, n, both[0].groups, difference, p, p_examples)


def _adjust(tested: Sequence[Tested]) -> list[Tested]:
    """Holm over the tests of each rank of metrics."""
    adjusted = list(tested)
    for rank in {one.rank for one in tested}:
        family = {place: one.p for place, one in enumerate(tested) if one.rank == rank and one.p is not None}
        for place, p in holm(family).items():
            adjusted[place] = replace(tested[place], p_holm=p, family=len(family))
    return adjusted


def pair_up(
    first: Sequence[Trained], second: Sequence[Trained] | None, a: str | None = None, b: str | None = None
) -> list[Pair]:
    """The pairs to compare, task by task.

    Two sets of results: the one model of each, models of the same name, or ``a`` of the first with ``b`` of the second.
    One set: its first model (``a``) with all others (``b``). Names: of a model, of settings, or ``model, settings``.
    """
    ones = choose(first, a)
    others = choose(first if second is None else second, b)
    pairs = []
    for task in dict.fromkeys(one.task for one in ones):
        mine, theirs = ([one for one in side if one.task == task] for side in (ones, others))
        if second is None:
            pairs += [(mine[0], other) for other in theirs if other.name != mine[0].name and _fits(mine[0], other, b)]
        elif len(mine) == len(theirs) == 1:
            pairs.append((mine[0], theirs[0]))
        elif theirs:
            same = [(one, other) for one in mine for other in theirs if one.name == other.name]
            if not same:
                raise BadInput(f"{task}: several models ({_named(mine)}; {_named(theirs)}); choose with --a and --b")
            pairs += same
    if not pairs and second is None:
        raise BadInput(
            f"the run has results of only one model ({_named(ones)}), so there is nothing to compare. Name a second "
            "run (malmoi compare RUN OTHER), or train a second model or settings."
        )
    if not pairs:
        both = f"{_named(ones)} and {_named(others)}"
        raise BadInput(f"the models {both} have no task in common, so there is nothing to compare")
    return pairs


def _fits(one: Trained, other: Trained, wanted: str | None) -> bool:
    """Whether two models of one run are comparable, or this pair was requested."""
    differing = [key for key in ("protocol", "split") if one.first[key] != other.first[key]]
    if differing and not wanted:
        log.warning("%s: %s is left out, it has another %s than %s", one.task, other.name, differing[0], one.name)
    return bool(wanted) or not differing


def choose(trained: Sequence[Trained], name: str | None) -> list[Trained]:
    """Results with this name; all without a name. ``BadInput`` if none has it."""
    if name is None:
        return list(trained)
    for names_of in (lambda one: one.name, lambda one: one.first["model"], lambda one: one.first.get("settings")):
        if matches := [one for one in trained if names_of(one) == name]:
            return matches
    raise BadInput(f"no results of {name}; there are results of {_named(trained)}")


def _named(trained: Sequence[Trained]) -> str:
    return "; ".join(dict.fromkeys(one.name for one in trained)) or "none"
