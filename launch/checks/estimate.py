"""Time, disk space and memory of each stage, and the plan that ``--dry-run`` prints.

The figures are computed from the recipe and the sizes of its files. Rates of the corpus and tokenizer stages were
measured on x86 cores (docs/corpus.md, docs/tokenizer.md) and are exact to a factor of two. Training time is the number
of operations (PaLM's count, arXiv 2204.02311, appendix B) divided by the speed of ``pretrain.metrics.device_speed``.

A fine-tuning job takes as long as finished jobs of its task and encoder. Without any, its time is 6 operations per
weight and token of the training file, which is right within a factor of two or three.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import yaml

from corpus.documents.accelerator import choose_precision, matmul_flops_per_second
from corpus.documents.model_files import check_sizes
from finetune.config import FRESH
from finetune.queue.jobs import Job, deciding, digest, iter_results, plan
from finetune.registry import task_of
from finetune.search.grid import trial_count
from launch.console import PlainConsole, Table, print_table, world_size
from launch.errors import USER_ERRORS
from launch.numbers import duration, group_by
from launch.pipeline import Stage, is_done, trains_tokenizer
from launch.recipe import SAMPLE, Recipe
from launch.stage_inputs import finetune_models, raw_inputs
from pretrain.config import ModelConfig, PretrainConfig
from pretrain.engine.memory import CHECKPOINT_BYTES, GIB, TRAINING_BYTES, needed_memory
from pretrain.metrics.device_speed import CPU_FLOPS, CPU_SHARE, Speed, cpu_speed, gpu_speed
from pretrain.metrics.flops import flops_per_token
from pretrain.model.sizes import count_parameters
from pretrain.schedule import phases

# seconds to start, and bytes of text per second and core: docs/corpus.md; tokenizer and tokens as measured with 74 MB
RATES = {"corpus": (2, 2.9e6), "decontamination": (5, 1.6e6), "tokenizer": (1, 0.6e6), "tokens": (1, 4e6)}
PROCESS_BYTES = {"corpus": GIB // 4, "tokenizer": GIB // 2, "tokens": GIB // 2}
BYTES_PER_TOKEN = 4.2  # of Korean text in UTF-8, with 32,000 pieces
UNPACKED = 3.5  # times a .zst or .gz file
SAMPLE_BYTES = 1_460_000  # of its documents
PROCESS_WITH_TORCH = int(0.6 * GIB)
GPU_DEVICES = ("nvidia*", "kfd", "dxg")  # NVIDIA, AMD, Windows: without one of them torch is not asked
TRAIN_TOKENS = {  # of the official training files in KLUE's vocabulary, over all windows
    "ynat": 0.7e6, "klue-sts": 0.4e6, "klue-nli": 1e6, "klue-ner": 0.7e6, "klue-re": 1.9e6, "klue-dp": 0.3e6,
    "klue-mrc": 10e6, "wos": 10e6,
}  # fmt: skip
SAMPLE_TOKENS, TOKENS_PER_EXAMPLE = 5e4, 60


@dataclass(frozen=True, slots=True)
class Machine:
    """``memory``: bytes of host memory; ``gpu``: useful FLOP/s of one, None without; ``cores`` and ``devices`` in use.

    ``precision``: resolved for this machine; ``core_flops``: of one core in fine-tuning; ``can_measure``: whether the
    speed of pretraining is measured on this machine.
    """

    cores: int
    memory: int
    gpu: float | None
    devices: int
    precision: str = "fp32"
    core_flops: float = CPU_FLOPS
    can_measure: bool = False

    @property
    def device_flops(self) -> float:
        """Operations per second of one GPU or core in fine-tuning."""
        return self.gpu or self.core_flops

    def training_speed(self, config: PretrainConfig, vocab_size: int) -> Speed:
        """Speed of pretraining; on a CPU it is measured with a few steps, if possible."""
        if self.gpu or not self.can_measure:
            return Speed(self.device_flops * (self.devices if self.gpu else self.cores))
        return cpu_speed(config.replaced("engine", precision=self.precision), vocab_size)


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds, bytes left on disk and bytes of memory; None if they are not known.

    ``min_memory``: the minimum for any settings of the engine.
    """

    seconds: float | None = None
    disk: float | None = None
    memory: float | None = None
    min_memory: float = 0


def this_machine(recipe: Recipe, *, trains: bool = True) -> Machine:
    """Cores that the recipe uses, memory, and the first GPU or the speed of a core (only if the run ``trains``)."""
    cores, memory, asked = min(recipe.workers, os.cpu_count() or 1), host_memory(), recipe.pretrain.engine.precision
    if not trains or find_spec("torch") is None:
        return Machine(cores, memory, None, world_size(), "fp32" if asked == "auto" else asked)
    import torch

    may_have_gpu = any(path for name in GPU_DEVICES for path in Path("/dev").glob(name))
    has_gpu = may_have_gpu and recipe.pretrain.engine.device == "auto" and torch.cuda.is_available()
    device = torch.device("cuda", 0) if has_gpu else torch.device("cpu")
    precision = choose_precision(asked, "pretrain.engine.precision", device).precision
    if has_gpu:
        speed = gpu_speed(torch.cuda.get_device_name(0), precision)
        return Machine(cores, memory, speed.flops, world_size(), precision)
    reached = matmul_flops_per_second("cpu", "bf16" if precision == "bf16" else "fp32")
    return Machine(cores, memory, None, world_size(), precision, CPU_SHARE * reached, can_measure=True)


def host_memory() -> int:
    """Bytes of memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def estimate(stage: str, recipe: Recipe, machine: Machine) -> Cost:
    """The cost of one stage; finetune is estimated by job, and stages that take seconds cost next to nothing."""
    recipe = with_local_sizes(recipe)
    if stage in RATES and (stage != "tokenizer" or trains_tokenizer(recipe)):
        text = text_bytes(recipe)
        if text is None:
            return Cost()
        has_benchmarks = stage == "corpus" and recipe.corpus.decontaminate.enabled
        start, rate = RATES["decontamination" if has_benchmarks else stage]
        disk = {"corpus": 0.4 * text, "tokenizer": 1e6, "tokens": 2 * text / BYTES_PER_TOKEN}[stage]
        return Cost(start + text / rate / machine.cores, disk, machine.cores * PROCESS_BYTES[stage])
    if stage == "pretrain" and recipe.pretrain.init_from is None:
        return _training(recipe, machine)
    if stage == "model":
        return Cost(1, 4 * count_parameters(recipe.pretrain.model, recipe.tokenizer.vocab_size))
    return Cost(2 if stage in ("sample", "report") else None)


def with_local_sizes(recipe: Recipe) -> Recipe:
    """The recipe with the sizes of ``pretrain.init_from`` as its own; unchanged if they are not on this machine."""
    if recipe.pretrain.init_from is None:
        return recipe
    from transformers import AutoConfig

    from pretrain.model.families import sizes_of

    name, extend = recipe.pretrain.init_from, recipe.tokenizer.extend
    try:
        if Path(name).is_dir():
            check_sizes(Path(name), name)
        start = AutoConfig.from_pretrained(name, local_files_only=True, trust_remote_code=False)
        model = ModelConfig.model_validate({**recipe.pretrain.model.model_dump(), **sizes_of(start)})
    except Exception:  # not here, or not a model that can be trained, which the checks report
        return recipe
    pieces = start.vocab_size + (extend if isinstance(extend, int) else 0)
    tokenizer = recipe.tokenizer.model_copy(update={"vocab_size": pieces})
    pretrain = recipe.pretrain.model_copy(update={"model": model, "init_from": None})
    return recipe.model_copy(update={"pretrain": pretrain, "tokenizer": tokenizer})


def text_bytes(recipe: Recipe) -> float | None:
    """Bytes of the recipe's text, unpacked; None without inputs, for a dataset of the Hub or a missing file."""
    if not recipe.corpus.inputs and not recipe.corpus.sources:
        return None
    size = float(SAMPLE_BYTES if SAMPLE in recipe.corpus.inputs else 0)
    try:
        for item in raw_inputs(recipe):
            if not isinstance(item.path, Path):
                return None
            size += item.path.stat().st_size * (UNPACKED if item.path.suffix in (".zst", ".gz") else 1)
    except USER_ERRORS:  # reported by the checks
        return None
    return size


def planned_tokens(recipe: Recipe) -> int:
    """Number of tokens in pretraining."""
    return sum(phase.sequences_until(phase.last) * phase.length for phase in phases(recipe.pretrain))


def planned_flops(recipe: Recipe) -> float:
    """Number of operations in pretraining."""
    settings, vocab_size = recipe.pretrain, recipe.tokenizer.vocab_size
    return sum(
        phase.sequences_until(phase.last) * phase.length * flops_per_token(phase.config, vocab_size)
        for phase in phases(settings)
    )  # fmt: skip


def _training(recipe: Recipe, machine: Machine) -> Cost:
    settings, engine, vocab_size = recipe.pretrain, recipe.pretrain.engine, recipe.tokenizer.vocab_size
    size = count_parameters(settings.model, vocab_size)
    rows = min(engine.max_sequences, settings.global_batch)
    known, is_cpu = settings.replaced("engine", precision=machine.precision), machine.gpu is None
    needed = needed_memory(known, vocab_size, size, rows, machine.devices, is_cpu=is_cpu)
    return Cost(
        seconds=machine.training_speed(settings, vocab_size).seconds(planned_flops(recipe), settings.steps),
        disk=(settings.saved.keep_checkpoints + 2) * CHECKPOINT_BYTES * size,  # with the best and a partial one
        memory=PROCESS_WITH_TORCH + sum(needed),
        min_memory=TRAINING_BYTES * size / (machine.devices if engine.zero_stage else 1),
    )


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
        groups = group_by(self.planned, lambda planned: (planned.job.task, planned.job.model, planned.job.settings))
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
    recipe, results = with_local_sizes(recipe), list(iter_results(run / "finetune"))
    jobs = {_identity(job): job for job in reversed(plan(recipe.finetune, finetune_models(recipe, run)))}
    planned_jobs = []
    for job in reversed(jobs.values()):
        known = [result for _, result in results if (result["task"], result.get("model")) == (job.task, job.model)]
        same = [r for r in known if has_settings_of(r, job) and r.get("encoder") == digest(job.encoder)]
        durations = [float(result["seconds"]) for result in same or known if "seconds" in result]
        seconds = fmean(durations) if durations else _seconds_by_size(job, recipe, rate)
        planned_jobs.append(Planned(job, any(result.get("seed") == job.seed for result in same), seconds))
    launch, slots = recipe.launch, recipe.workers  # slots: jobs that are trained at the same time
    if launch.engine != "local":
        tasks = min(launch.tasks, launch.at_once or launch.tasks)
        slots = tasks * (launch.gpus_per_task or launch.cpus_per_task)
    elif has_gpus:
        import torch

        slots = torch.accelerator.device_count()
    return Jobs(planned_jobs, slots, recipe.finetune.price_per_hour)


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
    net, config = recipe.pretrain.model, Path(job.encoder.removeprefix(FRESH)) / "config.json"
    sizes = json.loads(config.read_text("utf-8")) if config.is_file() else {}
    hidden, layers = sizes.get("hidden_size", net.hidden), sizes.get("num_hidden_layers", net.layers)
    weights = layers * (4 * hidden**2 + 2 * hidden * sizes.get("intermediate_size", net.intermediate))
    if custom := recipe.finetune.custom.get(job.task):
        tokens = Path(custom.train or custom.dev).stat().st_size / BYTES_PER_TOKEN
    else:
        tokens = SAMPLE_TOKENS if recipe.finetune.data == SAMPLE else TRAIN_TOKENS[job.task]
    tokens = min(tokens, (job.config.max_train_examples or math.inf) * TOKENS_PER_EXAMPLE)
    override = job.config.overrides.get(job.task)
    epochs = (override and override.epochs) or task_of(job.task, job.config).hyperparameters_for(hidden).epochs
    return 6 * weights * tokens * epochs / rate


def say_bytes(size: float) -> str:
    """``300 MiB`` or ``12 GiB``."""
    return f"{size / (1 << 20):,.0f} MiB" if size < GIB else f"{size / GIB:,.1f} GiB"


def show_plan(
    verb: str, stages: Sequence[Stage], recipe: Recipe, run: Path, machine: Machine, problems: Sequence[str]
) -> None:
    """Print problems, stages, sizes and the settings that differ from the paper's; write nothing."""
    console = PlainConsole(soft_wrap=True)
    count = f"{len(problems)} {'problem' if len(problems) == 1 else 'problems'}"
    console.print(f"{count} would stop this run:" if problems else "Nothing would stop this run.")
    for problem in problems:
        console.print(f"  ✗ {problem}")
    tunes = verb != "search" and any(stage.name == "finetune" for stage in stages)  # a search's best is not known yet
    try:
        tuning = jobs_left(recipe, run, machine.device_flops, machine.gpu is not None) if tunes else None
    except USER_ERRORS:  # in a file of a custom task
        if not problems:
            raise
        tuning = None
    rows = []
    for stage in stages:
        folder = run / stage.name
        state = "complete" if is_done(stage, recipe, run) else "started" if folder.is_dir() else "to do"
        cost = Cost() if state == "complete" else estimate(stage.name, recipe, machine)
        if stage.name == "finetune" and tuning is not None:
            cost = Cost(tuning.seconds(), None, PROCESS_WITH_TORCH * machine.cores)
        sizes = (f"~{say_bytes(size)}" if size else "–" for size in (cost.disk, cost.memory))
        rows.append([stage.name, state, f"~{duration(cost.seconds)}" if cost.seconds else "–", *sizes])
    heads = ("stage", "state", "time", "disk", "memory")
    print_table(Table(heads, rows, numbers=(2, 3, 4), title=f"malmoi {verb} {recipe.name} → {run}"), console)
    if tuning is not None:
        print_table(tuning.table(), console)
        console.print(tuning.sentence())
    for line in _sizes(stages, recipe, machine):
        console.print(line)
    settings = recipe.model_dump(mode="json", exclude_unset=True)
    yaml_text = yaml.safe_dump(settings, allow_unicode=True, sort_keys=False, default_flow_style=None)
    console.print(f"\nSettings of this recipe (all others are the paper's values):\n{yaml_text.rstrip()}")


def _sizes(stages: Sequence[Stage], recipe: Recipe, machine: Machine) -> list[str]:
    """What the stages would read and train, and on what, as far as recipe and input files tell."""
    text, settings = text_bytes(recipe), recipe.pretrain
    parts = phases(settings)
    rows = " then ".join(dict.fromkeys(f"{p.config.global_batch:,} sequences x {p.length} tokens" for p in parts))
    device = f"{machine.devices} GPU" if machine.gpu else f"{machine.cores} cores, no GPU"
    lines = {
        "corpus": f"text: {'not known' if text is None else f'{text / 1e6:,.1f} MB unpacked'}",
        "pretrain": f"pretraining: {settings.steps:,} steps x {rows} = {planned_tokens(recipe):,} tokens",
        "finetune-search": f"search: {trial_count(recipe.finetune.search)} trials for each task and encoder",
    }
    return [
        *(lines[stage.name] for stage in stages if stage.name in lines),
        f"estimated for this machine ({device}, {say_bytes(machine.memory)} of memory), at best within a factor of two",
    ]
