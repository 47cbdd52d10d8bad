"""Probes of a trained encoder: KLUE tasks with 1,000 training examples (or another number) through the finetune stage.

Hyperparameters are those of the recipe real-small; the seed is that of the pretraining. A probe shows whether a lower
loss improves fine-tuning; its scores compare candidates of one setup only.
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

DEFAULT_TASKS = ("ynat", "klue-nli", "klue-ner", "klue-dp")
EXAMPLES = 1_000  # for training, and at most as many for scoring


class Probes(NamedTuple):
    """Fine-tuning tasks (full names) and the folder of the KLUE files.

    Each task is also trained with the learning rates of real-small times each of ``lr_factors``, and with other
    numbers of ``examples``; one change at a time.
    """

    klue: Path
    tasks: tuple[str, ...]
    lr_factors: tuple[float, ...] = ()
    examples: tuple[int, ...] = ()

    @property
    def settings(self) -> dict[str, dict[str, Any]]:
        """The changes by the names of their results: ``lr-factor-3``, ``examples-10000``."""
        overrides = load_recipe("real-small").finetune.overrides
        factors = {
            f"lr-factor-{factor:g}": {
                "overrides": {task: {"lr": factor * (overrides[task].lr or 0.0)} for task in self.tasks}
            }
            for factor in self.lr_factors
            if factor != 1
        }
        return factors | {f"examples-{n}": {"max_train_examples": n} for n in self.examples if n != EXAMPLES}

    @property
    def names(self) -> list[str]:
        """Names of the results: ``ynat``, and with a change ``ynat, lr-factor-3``."""
        return [", ".join(filter(None, (task, name))) for name in ("", *self.settings) for task in self.tasks]


def probe_config(probes: Probes, seed: int, precision: str) -> FinetuneConfig:
    """Fine-tuning settings of the probes."""
    own = {
        "models": (OWN_MODEL,), "tasks": probes.tasks, "seeds": (seed,), "max_train_examples": EXAMPLES,
        "max_dev_examples": EXAMPLES, "save": "none", "precision": precision,
        "settings": probes.settings,
    }  # fmt: skip
    return FinetuneConfig.model_validate(load_recipe("real-small").finetune.model_dump() | own)


def check_probes(probes: Probes, precision: str) -> None:
    """Check files and numbers; BadInput if they cannot be used."""
    if not all(0 < factor < math.inf for factor in probes.lr_factors):
        raise BadInput("--lr-factor must be above 0; 3 is three times the learning rate of real-small")
    if not all(number > 0 for number in probes.examples):
        raise BadInput("--examples must be above 0")
    config = probe_config(probes, 1, precision)
    if missing := missing_files(config, probes.klue, config.tasks):
        raise BadInput(f"{probes.klue}: missing {', '.join(missing)}; set the KLUE folder with --klue, or omit it")


def probe(model: Path, probes: Probes, out: Path, seed: int, precision: str) -> dict[str, dict[str, float]]:
    """Fine-tune the model in ``model`` on each task; returns the metrics of the paper (0..100) by name."""
    inputs = FinetuneInputs(probes.klue, {OWN_MODEL: str(model)})
    finetune(probe_config(probes, seed, precision), inputs, out / "finetune")
    return {
        ", ".join(filter(None, (result["task"], settings_of(result)))): {
            name: round(result["scores"][name], 2) for name in paper_metrics(result)
        }
        for result in read_scores(out)
        if result["seed"] == seed
    }


def compare_probes(folders: Mapping[str, Mapping[int, Path]], baselines: Sequence[str], klue: Path) -> list[Table]:
    """Compare each candidate with each baseline, paired by seed and example; Holm correction per table.

    Args:
        folders: candidate to seed to the probe folder.
    """
    models = {name: as_one(name, by_seed) for name, by_seed in folders.items()}
    tables: list[Table] = []
    for baseline in baselines:
        for name in models:
            if name != baseline and (pairs := pairs_of(models[baseline], models[name])):
                for settings in dict.fromkeys(one.first.get("settings", "") for one, _ in pairs):
                    alike = [pair for pair in pairs if pair[0].first.get("settings", "") == settings]
                    tables += tested_tables("Probes", compare(alike, klue, shuffles=0))
    return tables
