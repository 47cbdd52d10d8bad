"""Invented results in the format of ``scores.json``: eight tasks x models x settings x seeds, to test the report.

``python -m tests.launch.fake_results FOLDER`` writes 1,280 of them below FOLDER/finetune.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from finetune.registry import TASKS
from finetune.task_names import TASK_NAMES

MODELS = ("model", "klue/bert-base", "klue/roberta-base", "klue/roberta-large")
SETTINGS = ("", "swa", "ema", "layer-decay", "r-drop")
SEEDS = tuple(range(1, 9))
COUNTS = ("gold", "predicted", "right")


def fake_result(task: str, model: str, settings: str, seed: int, **more: Any) -> dict[str, Any]:
    """One result; models and settings differ a little, seeds less."""
    rng = random.Random(f"{task} {model} {settings} {seed}")
    place = len(model) % 7 + len(settings) % 3
    record, metrics = TASKS[task], TASKS[task].metrics
    scores = {metric: 70 + place + rng.gauss(0, 0.5) for metric in metrics}
    epochs = 5
    return {
        "task": task, "model": model, "settings": settings, "seed": seed, "protocol": "malmoi", "split": "dev",
        "is_official_dev": True, "n": record.published.dev_examples, "n_train": 20_000, "headline": metrics[0],
        "bootstrap_samples": 200, "scores": scores, "intervals": {m: [x - 1.3, x + 1.3] for m, x in scores.items()},
        "constant": dict.fromkeys(metrics, 20.0), "counting": dict.fromkeys(metrics, 35.0),
        "counting_by": "frequencies", "tables": fake_tables(task, rng),
        "paper_dev": {name: dict(figures) for name, figures in record.published.dev_scores.items()},
        "hyperparameters": {
            "lr": 2e-5 if "large" in model else 5e-5, "epochs": epochs, "batch_size": 32, "warmup_share": 0.1,
            "weight_decay": 0.0, "max_tokens": 128, "accumulation": 1,
            **({"average": settings} if settings in ("swa", "ema") else {}),
        },
        "losses": [round(2.5 / (epoch + 1) + rng.gauss(0, 0.05) + place / 10, 5) for epoch in range(epochs)],
        "steps": 3_000, "selected": None, "device": "cuda", "peak_mib": 9_000, "seconds": 600.0 + 100 * place,
        "recipe": {},
        "data": {"dev": {"file": Path(record.files.dev).name, "sha256": "0" * 64, "version": "official v1.1"}},
        **more,
    }  # fmt: skip


def fake_tables(task: str, rng: random.Random) -> dict[str, list[dict[str, Any]]]:
    """A table by class, as long as that of the task, and a confusion matrix of YNAT."""
    rows = {"wos": 45, "klue-re": 30, "ynat": 7, "klue-nli": 3}.get(task, 6)
    classes = []
    for row in range(rows):
        gold = 100 + 13 * row
        right = round(gold * rng.uniform(0.6, 0.9))
        classes.append(
            {"class": f"class {row}", "gold": gold, "predicted": gold + 3, "right": right, "f1": 100 * right / gold}
        )
    names = [one["class"] for one in classes]
    confusion = [{"gold": one, **{other: rng.randrange(9) + 90 * (one == other) for other in names}} for one in names]
    return {"classes": classes, **({"confusion": confusion} if task in ("ynat", "klue-nli") else {})}


def fake_results(
    tasks: Sequence[str] = TASK_NAMES,
    models: Sequence[str] = MODELS,
    settings: Sequence[str] = SETTINGS,
    seeds: Sequence[int] = SEEDS,
) -> Iterator[dict[str, Any]]:
    """All combinations, in the order of the report."""
    for task in tasks:
        for model in models:
            for name in settings:
                for seed in seeds:
                    yield fake_result(task, model, name, seed)


def write_results(run: Path, results: Iterator[dict[str, Any]]) -> None:
    for found in results:
        folder = run / "finetune" / found["task"] / found["model"].replace("/", "-") / found["settings"]
        folder = folder / f"seed-{found['seed']}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "scores.json").write_text(json.dumps(found, ensure_ascii=False), "utf-8")


if __name__ == "__main__":
    write_results(Path(sys.argv[1]), fake_results())
