"""The finetune stage: every task x model x settings x seed is trained and scored once; finished results are kept.

On a CPU, ``workers`` jobs run at the same time with one thread each, so results do not depend on their number; each GPU
has one process. Files and encoders are checked before the first training. A failed job does not stop the others.

On a cluster every task works on the same list of jobs and ends when it is empty. File locks alone decide who trains a
job, so a command on any machine can help; where they do not work across the machines, jobs are trained twice, with the
same result. When all tasks have ended, jobs of killed tasks are submitted again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from corpus.documents.accelerator import PrecisionName, choose_precision, find_device
from corpus.documents.atomic_files import write_json
from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig
from finetune.data.files import read_json
from finetune.data.split import load_data
from finetune.encoder.loading import check_encoder
from finetune.ensemble.run import make_ensembles, plan_recipe
from finetune.job import Hide, find_result, finetune_one, origin_of, settings_of
from finetune.queue.jobs import FAILED_NAME, Files, Job, Outcome, Work, deciding, named, plan
from finetune.queue.pool import MAX_DEATHS, finish, one_thread, slots_of
from finetune.queue.progress import LOG_NAME, Progress, describe, failures
from finetune.registry import missing_files, task_of
from finetune.saved_models.save import keep_best

log = logging.getLogger(__name__)

CLUSTER_NAME = ".cluster"  # folder of plans and logs of cluster tasks


class FinetuneInputs(NamedTuple):
    """``data``: folder of official files; ``models``: name in the results to encoder folder or Hub name; ``hide``: see
    ``finetune_one``."""

    data: Path
    models: Mapping[str, str]
    hide: Hide | None = None


def run(
    config: FinetuneConfig, inputs: FinetuneInputs, out: Path, *, workers: int = 1, cluster: Cluster | None = None
) -> dict[str, Any]:
    """Train and score everything that ``config`` names and ``out`` does not have yet; existing results do not change.

    Args:
        cluster: its tasks work on the jobs instead of ``workers`` here.

    Writes ``<task>/<model>/seed-<n>/{predictions.jsonl, scores.json}``, with a folder for settings other than the
    first, and ensembles. Returns counts for the manifest: results, examples by task, and the scored split. ``BadInput``
    at the end if jobs failed.
    """
    jobs = plan(config, inputs.models)
    ready = prepare(config, inputs, on_cluster=cluster is not None)
    results = finish_trainings(jobs, ready, config, inputs, out, workers=workers, cluster=cluster)
    by_task = {result["task"]: result for result in results}
    return {
        "results": len(results),
        "examples": {task: {"train": by_task[task]["n_train"], "dev": by_task[task]["n"]} for task in config.tasks},
        "split": {task: by_task[task]["split"] for task in config.tasks},
    }


def finish_trainings(
    jobs: Sequence[Job], ready: Prepared, config: FinetuneConfig, inputs: FinetuneInputs, out: Path, *,
    workers: int, cluster: Cluster | None = None,
) -> list[dict[str, Any]]:  # fmt: skip
    """The results of all jobs, existing ones first; ``BadInput`` at the end if some failed."""
    recipes = {job: deciding(job.task, job.config, ready.precision, ready.files) for job in jobs}
    with named(jobs, recipes, out) as jobs:
        share = Share(jobs, ready.files, ready.precision, inputs.data, out, inputs.hide)
        finished = {job: result for job in share.jobs if (result := share.find(job)) is not None}
        left = [job for job in share.jobs if job not in finished]
        for job, result in finished.items():
            log.info("%s", describe(result))
            keep_best(job.folder(out), config)
        for job in left:
            (job.folder(out) / FAILED_NAME).unlink(missing_ok=True)  # a new command, a new try
        if cluster is not None and left:
            results, failed = finish_on_cluster(left, share, cluster, config.price_per_hour)
        else:
            results, failed = finish_jobs(
                left, len(finished), share.work, out, config, device=ready.device, workers=workers
            )
        if failed:
            raise BadInput(failures(failed, len(jobs)))
    make_ensembles(plan_recipe(config, jobs, out), out)
    return [*finished.values(), *results]


class Prepared(NamedTuple):
    """The files of each task, the device, and the precision of all jobs."""

    files: Mapping[str, Files]
    device: torch.device
    precision: PrecisionName


def prepare(config: FinetuneConfig, inputs: FinetuneInputs, *, on_cluster: bool = False) -> Prepared:
    """Make all ``checks`` and choose device and precision; the reason is logged. ``BadInput`` if each task of a cluster
    would have to choose."""
    checked = {name: make() for name, make in checks(config, inputs.data, inputs.models).items()}
    files = {task: checked[task] for task in config.tasks}
    device = find_device(config.device, "finetune.device")
    if on_cluster and config.precision != "auto":
        return Prepared(files, device, config.precision)
    if on_cluster:
        raise BadInput(
            "finetune.precision=auto asks the machine that trains, which on a cluster is not this one; set it to fp32 "
            "or bf16, so that all tasks train alike"
        )
    choice = choose_precision(config.precision, "finetune.precision", device)
    log.info("precision %s: %s", choice.precision, choice.reason)
    if choice.warning:
        log.warning("%s", choice.warning)
    return Prepared(files, device, choice.precision)


def checks(config: FinetuneConfig, data: Path | None, models: Mapping[str, str]) -> dict[str, Callable[[], Any]]:
    """Every check of the stage by its name: files, encoders and, under the names of tasks, their data and settings.
    Each raises ``BadInput``.

    Args:
        data: folder of the KLUE files; None if they are not here yet: the checks of KLUE tasks are left out.
        models: encoders that are here, by name.
    """
    tasks = [task for task in config.tasks if data is not None or task in config.custom]
    encoders = [models[name] for name in config.models if name in models]
    return {
        "KLUE files": partial(_require_files, config, data),
        **{f"encoder {encoder}": partial(check_encoder, encoder) for encoder in encoders},
        **{task: partial(_check_task, task, config, data or Path(), encoders) for task in tasks},
    }


def _require_files(config: FinetuneConfig, data: Path | None) -> None:
    if data is not None and (missing := missing_files(config, data, config.tasks)):
        raise BadInput(
            f"{data}: missing {', '.join(missing)} (plain or .zst); add them, or name only the tasks that are there "
            "with finetune.tasks=…; tasks in finetune.split_dev may train on a part of their dev file"
        )


def _check_task(name: str, config: FinetuneConfig, data: Path, encoders: Sequence[str]) -> Files:
    """Read the files of a task, and resolve its hyperparameters for each encoder."""
    if missing_files(config, data, [name]):
        return {}  # "KLUE files" names them
    task = task_of(name, config)
    files = load_data(task, data, config).files
    for settings in ("", *config.settings):
        for encoder in encoders:
            settings_of(task, config.with_settings(settings), encoder)
    return files


def finish_jobs(
    jobs: Sequence[Job], finished: int, work: Work, out: Path, config: FinetuneConfig, *, device: torch.device,
    workers: int,
) -> tuple[list[dict[str, Any]], list[Outcome]]:  # fmt: skip
    """Results and failures; ``finished``: number of jobs finished before. An error that stops everything is raised."""
    results, failed = [], []
    slots = slots_of(device, min(workers, len(jobs)))
    progress = Progress(jobs, finished, len(slots), out / LOG_NAME, config.price_per_hour)
    with one_thread() if not slots else nullcontext():
        for outcome in finish(jobs, work, out, progress.began, slots):
            progress.ended(outcome)
            if outcome.stops is not None:
                raise outcome.stops
            if outcome.result is not None:
                results.append(outcome.result)
            elif outcome.failure is not None:
                failed.append(outcome)
    return results, failed


class Cluster(NamedTuple):
    """``run(work, most, folder)`` calls ``work(number, scratch)`` in at most ``most`` tasks, with plans and logs below
    ``folder``, and returns when all have ended, with a message for each that failed."""

    run: Callable[[Callable[[int, Path], dict[str, Any]], int, Path], list[str]]
    cores: int
    gpus: int


class Share(NamedTuple):
    """What a process needs to work on jobs: ``files`` by task, folders ``data`` and ``out``."""

    jobs: Sequence[Job]
    files: Mapping[str, Files]
    precision: PrecisionName
    data: Path
    out: Path
    hide: Hide | None = None

    def find(self, job: Job) -> dict[str, Any] | None:
        """The result of a finished job."""
        task = task_of(job.task, job.config)
        origin = origin_of(job, task, self.precision, settings_of(task, job.config, job.encoder), self.files)
        return find_result(job, task, self.out, origin["fingerprint"])

    def failure_of(self, job: Job) -> str | None:
        """Why another task could not finish the job."""
        path = job.folder(self.out) / FAILED_NAME
        return read_json(path)["failure"] if path.is_file() else None

    def work(self, job: Job, *, parts: int) -> dict[str, Any]:
        """Finish a job unless another task has finished it or failed."""
        if (failure := self.failure_of(job)) is not None:
            raise BadInput(failure)
        return self.find(job) or finetune_one(job, self.precision, self.data, self.out, parts, self.hide)


def finish_on_cluster(
    left: Sequence[Job], share: Share, cluster: Cluster, price: float | None
) -> tuple[list[dict[str, Any]], list[Outcome]]:
    """Results of the jobs, and outcomes of those that failed."""
    results: dict[Job, dict[str, Any]] = {}
    failed: dict[Job, str] = {}
    reasons: list[str] = []
    work = partial(work_off, share=share, cores=cluster.cores, gpus=cluster.gpus)
    for _ in range(MAX_DEATHS):
        reasons = cluster.run(work, len(left) - len(results) - len(failed), share.out.absolute() / CLUSTER_NAME)
        for reason in reasons:
            log.warning("%s", reason)
        results = {job: result for job in left if (result := share.find(job)) is not None}
        failed = {job: why for job in left if job not in results and (why := share.failure_of(job)) is not None}
        if len(results) + len(failed) == len(left):
            break
        log.warning("%d of %d jobs were left by the tasks", len(left) - len(results) - len(failed), len(left))
    for job in results:
        keep_best(job.folder(share.out), job.config)
    hours = sum(result["seconds"] for result in results.values()) / 3600
    log.info("%.2f device hours%s", hours, f", cost {hours * price:,.2f}" if price is not None else "")
    nobody = f"no task finished it; {next(iter(reasons), 'none says why')}"
    unfinished = [job for job in left if job not in results]
    return list(results.values()), [Outcome(job, failure=failed.get(job, nobody)) for job in unfinished]


def work_off(number: int, scratch: Path, *, share: Share, cores: int, gpus: int) -> dict[str, Any]:
    """One cluster task: train jobs as long as one is free; the files in a job's folder record its outcome."""
    config, out = share.jobs[0].config, share.out
    device = find_device(config.device, "finetune.device")
    if gpus and device.type == "cpu":
        raise BadInput(f"launch.gpus_per_task={gpus}: torch sees no GPU in this task; correct it, or its environment")
    recipes = {job: deciding(job.task, job.config, share.precision, share.files) for job in share.jobs}
    done = 0
    with named(share.jobs, recipes, out):  # the command may be gone by now
        slots = slots_of(device, cores, apart=True)  # apart: a killed process is seen, and its job taken again
        for outcome in finish(share.jobs, share.work, out, lambda job: None, slots, waits=False):
            if outcome.stops is not None:
                raise outcome.stops
            if outcome.result is not None:
                log.info("%s", describe(outcome.result))
                done += 1
            elif outcome.failure is not None and share.failure_of(outcome.job) is None:
                log.error("%s: failed: %s\n%s", outcome.job, outcome.failure, outcome.trace)
                write_json(outcome.job.folder(out) / FAILED_NAME, {"failure": outcome.failure, "trace": outcome.trace})
    return {"done": done}
