"""Quick probes of a trained encoder: four KLUE tasks with 1,000 examples each, through the finetune stage as it stands.

Hyperparameters are those of the recipe real-small. A probe tells whether a lower loss is worth anything; its figures
compare contestants of one arena and nothing else.
"""

from __future__ import annotations

from pathlib import Path

from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig
from finetune.registry import missing_files
from finetune.run import FinetuneInputs
from finetune.run import run as finetune
from launch.recipe import load_recipe
from launch.report.gather import paper_metrics, read_scores

TASKS = ("ynat", "klue-nli", "klue-ner", "klue-dp")
EXAMPLES = 1_000  # to train on, and at most so many to score


def probe_config(precision: str) -> FinetuneConfig:
    """What the probes are trained by; ``precision``: the arena's."""
    own = {
        "tasks": TASKS, "split_dev": ("klue-ner", "klue-dp"), "seeds": (1,), "max_train_examples": EXAMPLES,
        "max_dev_examples": EXAMPLES, "bootstrap_samples": 0, "save": "none", "precision": precision,
    }  # fmt: skip
    given = load_recipe("real-small").finetune.overrides
    overrides = {task: given[task].model_dump(exclude_none=True) for task in TASKS}
    return FinetuneConfig.model_validate(own | {"overrides": overrides})


def check_probes(klue: Path, precision: str) -> None:
    """BadInput where files of the probes are missing."""
    if missing := missing_files(probe_config(precision), klue):
        raise BadInput(f"{klue}: missing {', '.join(missing)}; give the KLUE files with --klue, or leave it out")


def probe(model: Path, klue: Path, out: Path, precision: str) -> dict[str, dict[str, float]]:
    """Fine-tune the model in ``model`` on each task; returns the paper's metrics, 0..100, by task."""
    inputs = FinetuneInputs(klue, {"model": str(model)})
    finetune(probe_config(precision), inputs, out / "finetune")
    return {
        found["task"]: {name: round(found["scores"][name], 2) for name in paper_metrics(found)}
        for found in read_scores(out)
    }
