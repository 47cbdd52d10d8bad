"""Probes of a trained encoder: KLUE tasks with 1,000 examples each, through the finetune stage as it stands.

Hyperparameters are those of the recipe real-small, the seed is that of the pretraining. A probe tells whether a lower
loss is worth anything; its figures compare contestants of one arena and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig
from finetune.registry import missing_files
from finetune.run import FinetuneInputs
from finetune.run import run as finetune
from finetune.statistics.compare import compare
from launch.bench.paired import as_one, pairs_of, tested_tables
from launch.console import Table
from launch.pipeline import OWN_MODEL
from launch.recipe import load_recipe
from launch.report.gather import paper_metrics, read_scores, settings_of

QUICK = ("ynat", "klue-nli", "klue-ner", "klue-dp")  # tasks where none are named
EXAMPLES = 1_000  # to train on, and at most so many to score


def probe_config(tasks: Sequence[str], rates: Sequence[float], seed: int, precision: str) -> FinetuneConfig:
    """What the probes are trained by; ``precision``: the arena's.

    Args:
        rates: learning rates besides those of real-small, in units of them; results have the settings ``rate-3``.
    """
    given = load_recipe("real-small").finetune
    settings = {
        f"rate-{rate:g}": {"overrides": {task: {"lr": rate * (given.overrides[task].lr or 0.0)} for task in tasks}}
        for rate in rates
        if rate != 1
    }
    own = {
        "models": (OWN_MODEL,), "tasks": tuple(tasks), "seeds": (seed,), "max_train_examples": EXAMPLES,
        "max_dev_examples": EXAMPLES, "bootstrap_samples": 0, "save": "none", "precision": precision,
        "settings": settings,
    }  # fmt: skip
    return FinetuneConfig.model_validate(given.model_dump() | own)


def check_probes(klue: Path, tasks: Sequence[str], precision: str) -> None:
    """BadInput where files of the probes are missing."""
    if missing := missing_files(probe_config(tasks, (), 1, precision), klue):
        raise BadInput(f"{klue}: missing {', '.join(missing)}; give the KLUE files with --klue, or leave it out")


def names_of(tasks: Sequence[str], rates: Sequence[float]) -> list[str]:
    """What ``probe`` calls its results: ``ynat``, and with other rates ``ynat, rate-3``."""
    return [f"{task}, rate-{rate:g}" if rate != 1 else task for rate in (1, *rates) for task in tasks]


def probe(
    model: Path, klue: Path, out: Path, tasks: Sequence[str], rates: Sequence[float], seed: int, precision: str
) -> dict[str, dict[str, float]]:
    """Fine-tune the model in ``model`` on each task; returns the paper's metrics, 0..100, by name."""
    inputs = FinetuneInputs(klue, {OWN_MODEL: str(model)})
    finetune(probe_config(tasks, rates, seed, precision), inputs, out / "finetune")
    return {
        ", ".join(filter(None, (found["task"], settings_of(found)))): {
            name: round(found["scores"][name], 2) for name in paper_metrics(found)
        }
        for found in read_scores(out)
        if found["seed"] == seed
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
