"""The jobs of a run on the machines of a cluster: every task works on the same list and ends when it is empty.

File locks alone decide who trains a job, so no machine waits for another, and a command on any machine can help. When
all tasks have ended, jobs of killed tasks are submitted again. Locks must work across the machines (docs/clusters.md);
otherwise jobs are trained twice, with the same result.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from corpus.documents.accelerator import PrecisionName, find_device
from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig
from finetune.data.files import read_json, write_json
from finetune.job import Hide, find_result, finetune_one, origin_of, settings_of
from finetune.queue.attempts import Outcome
from finetune.queue.fingerprint import Files, deciding
from finetune.queue.jobs import FAILED_NAME, Job, named
from finetune.queue.pool import MAX_DEATHS, finish, slots_of
from finetune.queue.progress import describe
from finetune.registry import task_of
from finetune.saved_models.save import keep_best

log = logging.getLogger(__name__)

FOLDER_NAME = ".cluster"  # of plans and logs


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


def precision_on_cluster(config: FinetuneConfig) -> PrecisionName:
    """The precision of all tasks; ``BadInput`` if each would have to choose."""
    if config.precision != "auto":
        return config.precision
    raise BadInput(
        "finetune.precision=auto asks the machine that trains, which on a cluster is not this one; set it to fp32 or "
        "bf16, so that all tasks train alike"
    )


def finish_on_cluster(
    left: Sequence[Job], share: Share, cluster: Cluster, price: float | None
) -> tuple[list[dict[str, Any]], list[Outcome]]:
    """Results of the jobs, and outcomes of those that failed."""
    results: dict[Job, dict[str, Any]] = {}
    failed: dict[Job, str] = {}
    reasons: list[str] = []
    work = partial(work_off, share=share, cores=cluster.cores, gpus=cluster.gpus)
    for _ in range(MAX_DEATHS):
        reasons = cluster.run(work, len(left) - len(results) - len(failed), share.out.absolute() / FOLDER_NAME)
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
