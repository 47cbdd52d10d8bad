"""The fine-tuning jobs that ``--dry-run`` shows: which are done, how long the others take, and their price.

A job takes as long as finished jobs of its task and encoder. Without any, its time is 6 operations per weight and
token of the training file, which is right within a factor of two or three.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from finetune.config import FRESH
from finetune.queue.fingerprint import deciding, digest
from finetune.queue.jobs import Job, plan, read_results
from launch.console import Table
from launch.numbers import duration
from launch.recipe import SAMPLE, Recipe
from launch.stage_inputs import finetune_models

TRAIN_TOKENS = {  # of the official training files in KLUE's vocabulary, over all windows
    "ynat": 0.7e6, "klue-sts": 0.4e6, "klue-nli": 1e6, "klue-ner": 0.7e6, "klue-re": 1.9e6, "klue-dp": 0.3e6,
    "klue-mrc": 10e6, "wos": 10e6,
}  # fmt: skip
OTHER_TOKENS, SAMPLE_TOKENS, TOKENS_PER_EXAMPLE = 1e6, 5e4, 60


class Planned(NamedTuple):
    """A job, whether it is done, and its seconds on one device."""

    job: Job
    is_done: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class Jobs:
    """All jobs of a recipe in training order; ``slots`` run at the same time."""

    planned: Sequence[Planned]
    slots: int
    price: float | None

    @property
    def left(self) -> list[Planned]:
        return [planned for planned in self.planned if not planned.is_done]

    def seconds(self, slots: int | None = None) -> float:
        """Seconds until all are done."""
        return sum(planned.seconds for planned in self.left) / max(min(slots or self.slots, len(self.left)), 1)

    def table(self) -> Table:
        """A row per task, model and settings: seeds, finished and remaining jobs, time per job."""
        groups: dict[tuple[str, str, str], list[Planned]] = {}
        for planned in self.planned:
            groups.setdefault((planned.job.task, planned.job.model, planned.job.settings), []).append(planned)
        rows = []
        for (task, model, settings), group in groups.items():
            seeds, done = ", ".join(str(planned.job.seed) for planned in group), sum(p.is_done for p in group)
            each = f"~{duration(group[0].seconds)}"
            rows.append([task, model, settings or "–", seeds, str(done), str(len(group) - done), each])
        heads = ("task", "model", "settings", "seeds", "done", "left", "each")
        return Table(heads, rows, numbers=(4, 5, 6), title="Jobs of finetune")

    def sentence(self) -> str:
        """Number of remaining jobs, their time, and the price."""
        left, device = len(self.left), self.seconds(1)
        text = f"finetuning: {len(self.planned)} trainings, {len(self.planned) - left} done, {left} left"
        if not left:
            return text
        cost = f", cost ~{device / 3600 * self.price:,.2f}" if self.price is not None else ""
        slots = min(self.slots, left)
        return f"{text}; ~{duration(device)} of one device, ~{duration(self.seconds())} on {slots}{cost}"


def jobs_left(recipe: Recipe, run: Path, rate: float, has_gpus: bool) -> Jobs:
    """The jobs of the recipe; ``rate``: operations per second of one device."""
    results = list(read_results(run / "finetune"))
    jobs = {_identity(job): job for job in reversed(plan(recipe.finetune, finetune_models(recipe, run)))}
    planned_jobs = []
    for job in reversed(jobs.values()):
        known = [result for _, result in results if (result["task"], result.get("model")) == (job.task, job.model)]
        same = [r for r in known if has_settings_of(r, job) and r.get("encoder") == digest(job.encoder)]
        measured = [float(result["seconds"]) for result in same or known if "seconds" in result]
        seconds = fmean(measured) if measured else _seconds_by_size(job, recipe, rate)
        planned_jobs.append(Planned(job, any(result.get("seed") == job.seed for result in same), seconds))
    return Jobs(planned_jobs, _slots(recipe, has_gpus=has_gpus), recipe.finetune.price_per_hour)


def _identity(job: Job) -> str:
    """Equal for settings that do not change this task, which is then trained once for all of them."""
    decides = deciding(job.task, job.config, "fp32", {})  # data and precision are the same for all
    return json.dumps([job.task, job.model, job.seed, decides], sort_keys=True)


def has_settings_of(result: Mapping[str, Any], job: Job) -> bool:
    """Whether a result of a job's task has its settings; data files are assumed unchanged."""
    asked = job.config.precision
    precision = result.get("precision", "fp32") if asked == "auto" else asked
    recipe = deciding(job.task, job.config, precision, {job.task: result.get("data", {})})
    return bool(result["recipe"] == recipe)


def _seconds_by_size(job: Job, recipe: Recipe, rate: float) -> float:
    """Seconds of forward and backward passes over all epochs.

    Encoders that are not local count as ``pretrain.model``, whose default is the base model.
    """
    from finetune.registry import task_of

    net, config = recipe.pretrain.model, Path(job.encoder.removeprefix(FRESH)) / "config.json"
    sizes = json.loads(config.read_text("utf-8")) if config.is_file() else {}
    hidden, layers = sizes.get("hidden_size", net.hidden), sizes.get("num_hidden_layers", net.layers)
    weights = layers * (4 * hidden**2 + 2 * hidden * sizes.get("intermediate_size", net.intermediate))
    tokens = SAMPLE_TOKENS if recipe.finetune.data == SAMPLE else TRAIN_TOKENS.get(job.task, OTHER_TOKENS)
    tokens = min(tokens, (job.config.max_train_examples or math.inf) * TOKENS_PER_EXAMPLE)
    override = job.config.overrides.get(job.task)
    epochs = (override and override.epochs) or task_of(job.task, job.config).hyperparameters_for(hidden).epochs
    return 6 * weights * tokens * epochs / rate


def _slots(recipe: Recipe, *, has_gpus: bool) -> int:
    """Number of jobs that are trained at the same time, here or by the tasks of a cluster."""
    launch = recipe.launch
    if launch.engine != "local":
        tasks = min(launch.tasks, launch.at_once or launch.tasks)
        return tasks * (launch.gpus_per_task or launch.cpus_per_task)
    if not has_gpus:
        return recipe.workers
    import torch

    return torch.accelerator.device_count()
