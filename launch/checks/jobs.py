"""The jobs of finetune as ``--dry-run`` shows them: which are there, what the others will take, and what that costs.

A job takes as long as those of its task and encoder that are there. Without any, it is operations by what a device
does a second, after the size of the training file: that tells minutes from days. Nothing is read but results, names
and sizes, so what changed inside the data files is noticed by the run alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from corpus.documents.errors import BadInput
from finetune.config import FRESH
from finetune.queue.identity import deciding, digest
from finetune.queue.jobs import Job, plan, read_results
from launch.console import Table, say_duration
from launch.recipe import OWN_MODEL, SAMPLE, Recipe
from launch.stage_inputs import finetune_models


class Size(NamedTuple):
    """Of an example of the official files: bytes, and tokens in KLUE's vocabulary, windows of one text together."""

    bytes: int
    tokens: int


EXAMPLES = {
    "ynat": Size(280, 16), "klue-sts": Size(870, 38), "klue-nli": Size(500, 40), "klue-ner": Size(530, 33),
    "klue-re": Size(690, 59), "klue-dp": Size(610, 27), "klue-mrc": Size(3_000, 560), "wos": Size(870, 170),
}  # fmt: skip
OTHER_EXAMPLES = Size(500, 60)
SAMPLE_TRAIN_BYTES = 490_000  # of a task
UNPACKED = 3.5  # times a .zst file
LENGTH = 128  # tokens that each is compared with
KEEP_ENCODER = ("model", "start")  # in the folder of a result: what others can start from
SIZES = {"hidden_size", "num_hidden_layers", "intermediate_size"}


class Planned(NamedTuple):
    """A job, whether its result is there, and the seconds of one device that it takes; None: not known."""

    job: Job
    is_done: bool
    seconds: float | None
    is_measured: bool


@dataclass(frozen=True, slots=True)
class Jobs:
    """All jobs of a recipe, ``slots`` of them side by side; ``rate``: operations a second of one device."""

    planned: Sequence[Planned]
    slots: int
    rate: float
    price: float | None

    @property
    def left(self) -> list[Planned]:
        return [planned for planned in self.planned if not planned.is_done]

    def seconds(self) -> float | None:
        """Until all are done; None where nothing is known of any."""
        device = self._device_seconds()
        return device and device / max(min(self.slots, len(self.left)), 1)

    def _device_seconds(self) -> float | None:
        """Of those that are left, the unknown ones as long as the mean."""
        known = [planned.seconds for planned in self.left if planned.seconds is not None]
        return fmean(known) * len(self.left) if known else None

    def table(self) -> Table:
        """Tasks x models x settings, their seeds, and what is there."""
        groups: dict[tuple[str, str, str], list[Planned]] = {}
        for planned in self.planned:
            groups.setdefault((planned.job.task, planned.job.model, planned.job.settings), []).append(planned)
        rows, starts = [], any(planned.job.start for planned in self.planned)
        for (task, model, settings), group in groups.items():
            seeds, done = ", ".join(str(planned.job.seed) for planned in group), sum(p.is_done for p in group)
            seconds, about = group[0].seconds, "" if group[0].is_measured else "~"
            each = "–" if seconds is None else f"{about}{say_duration(seconds)}"
            source = group[0].job.start
            start = [source.task if source else "–"] if starts else []
            rows.append([task, model, settings or "–", *start, seeds, str(done), str(len(group) - done), each])
        heads = ("task", "model", "settings", *(["starts from"] if starts else []), "seeds", "done", "left", "each")
        return Table(heads, rows, numbers=range(len(heads) - 3, len(heads)), title="Jobs of finetune")

    def sentence(self) -> str:
        """How many jobs are left, how long they take, and the price."""
        left, device = self.left, self._device_seconds()
        said = f"finetuning: {len(self.planned)} trainings, {len(self.planned) - len(left)} done, {len(left)} left"
        if device is None:
            return said
        slots = max(min(self.slots, len(left)), 1)
        said += f"; ~{say_duration(device)} of one device, ~{say_duration(device / slots)} on {slots}"
        said += f", cost ~{device / 3600 * self.price:,.2f}" if self.price is not None else ""
        measured = sum(planned.is_measured for planned in left)
        by = [f"{measured} by results that are there"] if measured else []
        by += (
            [f"{len(left) - measured} by operations at {self.rate / 1e9:,.0f} GFLOP/s"] if measured < len(left) else []
        )
        return f"{said} ({', '.join(by)})"


def jobs_left(recipe: Recipe, run: Path, rate: float, has_gpus: bool) -> Jobs:
    """The jobs of the recipe in the order of their training."""
    results = list(read_results(run / "finetune"))
    jobs = {_identity(job): job for job in reversed(plan(recipe.finetune, finetune_models(recipe, run)))}
    found, without_encoder = list[Planned](), set[str]()
    for identity, job in reversed(jobs.items()):
        known = [(p, r) for p, r in results if (r["task"], r.get("model")) == (job.task, job.model)]
        same = [(path, result) for path, result in known if _is_of(result, job)]
        measured = [float(result["seconds"]) for _, result in same or known if "seconds" in result]
        seconds = fmean(measured) if measured else _by_operations(job, recipe, run, rate)
        own = [path.parent for path, result in same if result.get("seed") == job.seed]
        if not any((folder / name).is_dir() for folder in own for name in KEEP_ENCODER):
            without_encoder.add(identity)
        found.append(Planned(job, bool(own), seconds, bool(measured)))
    again = without_encoder & {_identity(p.job.start) for p in found if p.job.start and not p.is_done}
    found = [planned._replace(is_done=planned.is_done and _identity(planned.job) not in again) for planned in found]
    return Jobs(found, _slots(recipe, has_gpus=has_gpus), rate, recipe.finetune.price_per_hour)


def _identity(job: Job) -> str:
    """Equal for settings that say nothing of their task, which is trained once for all of them."""
    decides = deciding(job.task, job.config, "fp32", {})  # data and precision are the same for all
    return json.dumps([job.task, job.model, job.seed, decides], sort_keys=True)


def _is_of(result: Mapping[str, Any], job: Job) -> bool:
    """Whether a result has the settings and the encoder of a job, its data taken as they were."""
    return has_settings_of(result, job) and result.get("encoder") == digest(job.encoder)


def has_settings_of(result: Mapping[str, Any], job: Job) -> bool:
    """Whether a result of a job's task has its settings, data taken as they were."""
    asked = job.config.precision
    precision = result.get("precision", "fp32") if asked == "auto" else asked
    start, files = result["recipe"].get("start", {}).get("data", {}), {job.task: result.get("data", {})}
    if job.start is not None:
        files[job.start.task] = {split: {"sha256": digest_} for split, digest_ in start.items()}
    return bool(result["recipe"] == deciding(job.task, job.config, precision, files))


def _by_operations(job: Job, recipe: Recipe, run: Path, rate: float) -> float | None:
    """Forward and backward over the training file as often as there are epochs; None where file or encoder is not here
    yet."""
    from finetune.registry import task_of

    task, size = task_of(job.task, job.config), _training_bytes(job, recipe, run)
    network = _network(job.encoder, recipe)
    if size is None or network is None:
        return None
    hidden, layers, inner = (int(network[key]) for key in ("hidden_size", "num_hidden_layers", "intermediate_size"))
    example = EXAMPLES.get(job.task, OTHER_EXAMPLES)
    examples = min(size / example.bytes, job.config.max_train_examples or math.inf)
    override = job.config.overrides.get(job.task)
    epochs = (override and override.epochs) or task.published(hidden).epochs
    per_token = layers * (6 * (4 * hidden**2 + 2 * hidden * inner) + 12 * LENGTH * hidden)
    return examples * example.tokens * epochs * per_token / rate


def _training_bytes(job: Job, recipe: Recipe, run: Path) -> float | None:
    from finetune.data.split import find
    from finetune.registry import task_of

    task, name = task_of(job.task, job.config), recipe.finetune.data or ""
    folder = run / "sample" / "klue" if name == SAMPLE else Path(name)
    if name == SAMPLE and not folder.is_dir():
        return SAMPLE_TRAIN_BYTES
    try:
        path = find(task, folder, "train") or find(task, folder, "dev")
    except BadInput:
        path = None
    return path.stat().st_size * (UNPACKED if path.suffix == ".zst" else 1) if path else None


def _network(encoder: str, recipe: Recipe) -> Mapping[str, Any] | None:
    """The configuration of an encoder that is here, or of the one that the run trains."""
    from huggingface_hub import try_to_load_from_cache

    name = encoder.removeprefix(FRESH)
    is_path = name.startswith((".", "~")) or name.count("/") != 1 or Path(name).exists()
    cached = None if is_path else try_to_load_from_cache(name, "config.json")
    path = Path(cached) if isinstance(cached, str) else Path(name) / "config.json"
    if not path.is_file():
        net = recipe.pretrain.model
        sizes = {"hidden_size": net.hidden, "num_hidden_layers": net.layers, "intermediate_size": net.intermediate}
        return sizes if Path(name).name == OWN_MODEL else None
    found = json.loads(path.read_text("utf-8"))
    return found if found.keys() >= SIZES else None


def _slots(recipe: Recipe, *, has_gpus: bool) -> int:
    """How many jobs are trained side by side, here or by the tasks of a cluster."""
    launch = recipe.launch
    if launch.engine != "local":
        tasks = min(launch.tasks, launch.at_once or launch.tasks)
        return tasks * (launch.gpus_per_task or launch.cpus_per_task)
    if not has_gpus:
        return recipe.workers
    import torch

    return torch.accelerator.device_count()
