"""Results of several run folders as one model, and tables of comparisons of two such models.

An encoder pretrained with three seeds is fine-tuned once with each. The comparison of ``malmoi compare`` then covers
the three pretraining runs, so its intervals include pretraining.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from finetune.score.compare import Pair, Tested, Trained, find_trained
from launch.console import Table
from launch.report.differences import table_of

TaskKey = tuple[str, str]  # task and name of the settings ("" for those of the recipe)


def as_one(name: str, runs: Mapping[int, Path]) -> dict[TaskKey, Trained]:
    """Results of each run folder with its own seed, as one model ``name`` or ``name, settings``.

    Args:
        runs: seed to run folder; folders without results are ignored.
    """
    results: dict[TaskKey, list[tuple[Path, dict[str, Any]]]] = {}
    for seed, run in runs.items():
        if any(run.glob("finetune/**/scores.json")):
            for one in find_trained(run):
                key = (one.task, one.first.get("settings", ""))
                results.setdefault(key, []).extend(own for own in one.results if own[1]["seed"] == seed)
    return {
        (task, settings): Trained(task, ", ".join(filter(None, (name, settings))), tuple(own))
        for (task, settings), own in results.items()
        if own
    }


def pairs_of(a: Mapping[TaskKey, Trained], b: Mapping[TaskKey, Trained]) -> list[Pair]:
    """Pairs of the tasks that both have with the same settings, ordered by settings."""
    return [(a[key], b[key]) for key in sorted(a, key=lambda key: key[1]) if key in b]


def tested_tables(title: str, tested: Sequence[Tested]) -> Iterator[Table]:
    """A table for each pair of models."""
    for names in dict.fromkeys(one.names for one in tested):
        own = [one for one in tested if one.names == names]
        yield table_of(own, f"{title}: a: {names[0]}, b: {names[1]}")
