"""Probes of a trained encoder: KLUE tasks with 1,000 examples each, or other numbers, through the finetune stage.

Hyperparameters are those of the recipe real-small, the seed is that of the pretraining. A probe tells whether a lower
loss is worth anything; its figures compare contestants of one arena and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.paired import as_one, pairs_of, tested_tables
from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig
from finetune.registry import missing_files
from finetune.run import FinetuneInputs
from finetune.run import run as finetune
from finetune.score.compare import compare
from launch.console import Table
from launch.recipe import OWN_MODEL, load_recipe
from launch.report.results import paper_metrics, read_scores, settings_of

QUICK = ("ynat", "klue-nli", "klue-ner", "klue-dp")  # tasks where none are named
EXAMPLES = 1_000  # to train on, where no other number is asked for, and at most so many to score


class Probes(NamedTuple):
    """What encoders are fine-tuned on: the folder of the KLUE files and tasks, by their full names.

    Each task is also trained with ``rates``, in units of the learning rates of real-small, and with other numbers of
    ``examples``, one thing changed at a time.
    """

    klue: Path
    tasks: tuple[str, ...]
    rates: tuple[float, ...] = ()
    examples: tuple[int, ...] = ()

    @property
    def settings(self) -> dict[str, dict[str, Any]]:
        """What is changed, by the name that results have: ``rate-3``, ``examples-10000``."""
        given = load_recipe("real-small").finetune.overrides
        rates = {
            f"rate-{rate:g}": {"overrides": {task: {"lr": rate * (given[task].lr or 0.0)} for task in self.tasks}}
            for rate in self.rates
            if rate != 1
        }
        return rates | {f"examples-{n}": {"max_train_examples": n} for n in self.examples if n != EXAMPLES}

    @property
    def names(self) -> list[str]:
        """Of the results: ``ynat``, and with other settings ``ynat, rate-3``."""
        return [", ".join(filter(None, (task, name))) for name in ("", *self.settings) for task in self.tasks]


def probe_config(probes: Probes, seed: int, precision: str) -> FinetuneConfig:
    """What the probes are trained by; ``precision``: the arena's."""
    own = {
        "models": (OWN_MODEL,), "tasks": probes.tasks, "seeds": (seed,), "max_train_examples": EXAMPLES,
        "max_dev_examples": EXAMPLES, "bootstrap_samples": 0, "save": "none", "precision": precision,
        "settings": probes.settings,
    }  # fmt: skip
    return FinetuneConfig.model_validate(load_recipe("real-small").finetune.model_dump() | own)


def check_probes(probes: Probes, precision: str) -> None:
    """BadInput where files of the probes are missing, or a number is none to train with."""
    if not all(0 < rate < math.inf for rate in probes.rates):
        raise BadInput("--rate must be above 0; 3 is three times the rate of real-small")
    if not all(number > 0 for number in probes.examples):
        raise BadInput("--examples must be above 0")
    if missing := missing_files(probe_config(probes, 1, precision), probes.klue):
        raise BadInput(f"{probes.klue}: missing {', '.join(missing)}; give the KLUE files with --klue, or leave it out")


def probe(model: Path, probes: Probes, out: Path, seed: int, precision: str) -> dict[str, dict[str, float]]:
    """Fine-tune the model in ``model`` on each task; returns the paper's metrics, 0..100, by name."""
    inputs = FinetuneInputs(probes.klue, {OWN_MODEL: str(model)})
    finetune(probe_config(probes, seed, precision), inputs, out / "finetune")
    return {
        ", ".join(filter(None, (result["task"], settings_of(result)))): {
            name: round(result["scores"][name], 2) for name in paper_metrics(result)
        }
        for result in read_scores(out)
        if result["seed"] == seed
    }


def compared_probes(folders: Mapping[str, Mapping[int, Path]], references: Sequence[str], klue: Path) -> list[Table]:
    """Each contestant beside each reference, paired by seed and example; Holm corrects over the tasks of a table.

    Args:
        folders: contestant to seed to the folder of its probes.
    """
    models = {name: as_one(name, by_seed) for name, by_seed in folders.items()}
    tables: list[Table] = []
    for reference in references:
        for name in models:
            if name != reference and (pairs := pairs_of(models[reference], models[name])):
                for settings in dict.fromkeys(one.first.get("settings", "") for one, _ in pairs):
                    alike = [pair for pair in pairs if pair[0].first.get("settings", "") == settings]
                    tables += tested_tables("Probes", compare(alike, klue, shuffles=0))
    return tables
