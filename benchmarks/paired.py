"""Fine-tuned results whose seeds stand in run folders of their own, as one model, and the tables of two such models.

An encoder that was pretrained with three seeds is fine-tuned once with each. What ``malmoi compare`` makes of three
seeds in one folder then holds for three pretrainings, so an interval is one over pretraining, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from finetune.score.compare import Pair, Tested
from finetune.score.results import Trained, find_trained
from launch.console import Table
from launch.report.differences import table_of

TaskKey = tuple[str, str]  # a task, and the name of the settings it was trained with ("" for those of the recipe)


def as_one(name: str, runs: Mapping[int, Path]) -> dict[TaskKey, Trained]:
    """Of each run folder the results with its own seed, all of them as the model ``name``, or ``name, settings``.

    Args:
        runs: seed to run folder; one without any result is left out.
    """
    results: dict[TaskKey, list[tuple[Path, dict[str, Any]]]] = {}
    for seed, run in runs.items():
        if any(run.glob("finetune/**/scores.json")):
            for one in find_trained(run):
                key = (one.task, one.first.get("settings", ""))
                results.setdefault(key, []).extend(own for own in one.results if own[1]["seed"] == seed)
    return {
        (task, settings): Trained(task, ", ".join(filter(None, (name, settings))), tuple(given))
        for (task, settings), given in results.items()
        if given
    }


def pairs_of(a: Mapping[TaskKey, Trained], b: Mapping[TaskKey, Trained]) -> list[Pair]:
    """The tasks that both have, trained with the same settings; all of one settings together."""
    return [(a[key], b[key]) for key in sorted(a, key=lambda key: key[1]) if key in b]


def tested_tables(title: str, tested: Sequence[Tested]) -> Iterator[Table]:
    """A table for each two models."""
    for names in dict.fromkeys(found.names for found in tested):
        chosen = [found for found in tested if found.names == names]
        yield table_of(chosen, f"{title}: a: {names[0]}, b: {names[1]}")
