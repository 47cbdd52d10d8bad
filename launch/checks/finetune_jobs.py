"""The fine-tuning jobs that ``--dry-run`` shows: which are done, how long the others take, and their price.

A job takes as long as finished jobs of its task and encoder. Without any, its time is the number of operations, from
the size of the training file, divided by the speed of the device; this is a rough estimate. Only results, names and
sizes are read, so changes inside data files are found by the run itself.
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
from finetune.queue.fingerprint import deciding, digest
from finetune.queue.jobs import Job, plan, read_results
from launch.console import Table, say_duration
from launch.recipe import OWN_MODEL, SAMPLE, Recipe
from launch.stage_inputs import finetune_models


class Size(NamedTuple):
    """Mean size of an example of the official files: bytes, and tokens in KLUE's vocabulary over all its windows."""

    bytes: int
    tokens: int


EXAMPLES = {
    "ynat": Size(280, 16), "klue-sts": Size(870, 38), "klue-nli": Size(500, 40), "klue-ner": Size(530, 33),
    "klue-re": Size(690, 59), "klue-dp": Size(610, 27), "klue-mrc": Size(3_000, 560), "wos": Size(870, 170),
}  # fmt: skip
OTHER_EXAMPLES = Size(500, 60)
SAMPLE_TRAIN_BYTES = 490_000  # mean per task
UNPACKED = 3.5  # unpacked size of a .zst file, as a factor
LENGTH = 128  # tokens that each token attends to
ENCODER_FOLDERS = ("model", "start")  # in a result's folder: encoders that other jobs can start from
SIZES = {"hidden_size", "num_hidden_layers", "intermediate_size"}


class Planned(NamedTuple):
    """A job, whether it is done, and its seconds on one device; None: unknown."""

    job: Job
    is_done: bool
    seconds: float | None
    is_measured: bool


@dataclass(frozen=True, slots=True)
class Jobs:
    """All jobs of a recipe; ``slots`` run at the same time; ``rate``: operations per second of one device."""

    planned: Sequence[Planned]
    slots: int
    rate: float
    price: float | None

    @property
    def left(self) -> list[Planned]:
        return [planned for planned in self.planned if not planned.is_done]

    def seconds(self) -> float | None:
        """Seconds until all are done; None if unknown."""
        device = self._device_seconds()
        return device and device / max(min(self.slots, len(self.left)), 1)

    def _device_seconds(self) -> float | None:
        """Seconds on one device of the jobs that are left; unknown ones count as the mean."""
        known = [planned.seconds for planned in self.left if planned.seconds is not None]
        return fmean(known) * len(self.left) if known else None

    def table(self) -> Table:
        """A row per task, model and settings: seeds, finished and remaining jobs, time per job."""
        groups: dict[tuple[str, str, str], list[Planned]] = {}
        for planned in self.planned:
            groups.setdefault((planned.job.task, planned.job.model, planned.job.settings), []).append(planned)
        rows, has_start = [], any(planned.job.start for planned in self.planned)
        for (task, model, settings), group in groups.items():
            seeds, done = ", ".join(str(planned.job.seed) for planned in group), sum(p.is_done for p in group)
            seconds, about = group[0].seconds, "" if group[0].is_measured else "~"
            each = "–" if seconds is None else f"{about}{say_duration(seconds)}"
            source = group[0].job.start
            start = [source.task if source else "–"] if has_start else []
            rows.append([task, model, settings or "–", *start, seeds, str(done), str(len(group) - done), each])
        heads = ("task", "model", "settings", *(["starts from"] if has_start else []), "seeds", "done", "left", "each")
        return Table(heads, rows, numbers=range(len(heads) - 3, len(heads)), title="Jobs of finetune")

    def sentence(self) -> str:
        """Number of remaining jobs, their time, and the price."""
        left, device = self.left, self._device_seconds()
        text = f"finetuning: {len(self.planned)} trainings, {len(self.planned) - len(left)} done, {len(left)} left"
        if device is None:
            return text
        slots = max(min(self.slots, len(left)), 1)
        text += f"; ~{say_duration(device)} of one device, ~{say_duration(device / slots)} on {slots}"
        text += f", cost ~{device / 3600 * self.price:,.2f}" if self.price is not None else ""
        measured = sum(planned.is_measured for planned in left)
        by = [f"{measured} from finished results"] if measured else []
        if measured < len(left):
            by.append(f"{len(left) - measured} from operations at {self.rate / 1e9:,.0f} GFLOP/s")
        return f"{text} ({', '.join(by)})"


def jobs_left(recipe: Recipe, run: Path, rate: float, has_gpus: bool) -> Jobs:
    """The jobs of the recipe in training order."""
    results = list(read_results(run / "finetune"))
    jobs = {_identity(job): job for job in reversed(plan(recipe.finetune, finetune_models(recipe, run)))}
    planned_jobs, without_encoder = list[Planned](), set[str]()
    for identity, job in reversed(jobs.items()):
        known = [(p, r) for p, r in results if (r["task"], r.get("model")) == (job.task, job.model)]
        same = [(path, result) for path, result in known if _is_of(result, job)]
        measured = [float(result["seconds"]) for _, result in same or known if "seconds" in result]
        seconds = fmean(measured) if measured else _by_operations(job, recipe, run, rate)
        own = [path.parent for path, result in same if result.get("seed") == job.seed]
        if not any((folder / name).is_dir() for folder in own for name in ENCODER_FOLDERS):
            without_encoder.add(identity)
        planned_jobs.append(Planned(job, bool(own), seconds, bool(measured)))
    again = without_encoder & {_identity(p.job.start) for p in planned_jobs if p.job.start and not p.is_done}
    planned_jobs = [one._replace(is_done=one.is_done and _identity(one.job) not in again) for one in planned_jobs]
    return Jobs(planned_jobs, _slots(recipe, has_gpus=has_gpus), rate, recipe.finetune.price_per_hour)


def _identity(job: Job) -> str:
    """Equal for settings that do not change this task, which is then trained once for all of them."""
    decides = deciding(job.task, job.config, "fp32", {})  # data and precision are the same for all
    return json.dumps([job.task, job.model, job.seed, decides], sort_keys=True)


def _is_of(result: Mapping[str, Any], job: Job) -> bool:
    """Whether a result has the settings and the encoder of a job; data files are assumed unchanged."""
    return has_settings_of(result, job) and result.get("encoder") == digest(job.encoder)


def has_settings_of(result: Mapping[str, Any], job: Job) -> bool:
    """Whether a result of a job's task has its settings; data files are assumed unchanged."""
    asked = job.config.precision
    precision = result.get("precision", "fp32") if asked == "auto" else asked
    start, files = result["recipe"].get("start", {}).get("data", {}), {job.task: result.get("data", {})}
    if job.start is not None:
        files[job.start.task] = {split: {"sha256": digest_} for split, digest_ in start.items()}
    return bool(result["recipe"] == deciding(job.task, job.config, precision, files))


def _by_operations(job: Job, recipe: Recipe, run: Path, rate: float) -> float | None:
    """Seconds of forward and backward passes over all epochs; None if the file or the encoder does not exist yet."""
    from finetune.registry import task_of

    task, size = task_of(job.task, job.config), _training_bytes(job, recipe, run)
    network = _network(job.encoder, recipe)
    if size is None or network is None:
        return None
    hidden, layers, inner = (int(network[key]) for key in ("hidden_size", "num_hidden_layers", "intermediate_size"))
    example = EXAMPLES.get(job.task, OTHER_EXAMPLES)
    examples = min(size / example.bytes, job.config.max_train_examples or math.inf)
    override = job.config.overrides.get(job.task)
    epochs = (override and override.epochs) or task.hyperparameters_for(hidden).epochs
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
    """The configuration of a local encoder, or of the one that the run pretrains."""
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
    """Number of jobs that are trained at the same time, here or by the tasks of a cluster."""
    launch = recipe.launch
    if launch.engine != "local":
        tasks = min(launch.tasks, launch.at_once or launch.tasks)
        return tasks * (launch.gpus_per_task or launch.cpus_per_task)
    if not has_gpus:
        return recipe.workers
    import torch

    return torch.accelerator.device_count()
