"""One trial: an ordinary training in a folder named after its fingerprint, of which only a record is kept.

Studies that try the same combination on the same data share the training, with any method and seed. The record
describes the training; ``judge`` derives from it and the study's limits whether the trial is complete, pruned or
failed, so a study does not depend on what exists on disk.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from corpus.documents.accelerator import PrecisionName
from corpus.documents.errors import BadInput
from finetune.data.files import read_json, write_json
from finetune.job import finetune_one, origin_of, settings_of
from finetune.queue.attempts import CLAIM_NAME
from finetune.queue.fingerprint import Files
from finetune.queue.jobs import SCORES_NAME, Job
from finetune.registry import task_of
from finetune.search.grid import Values
from finetune.search.propose import State, Trial, as_number
from finetune.train.trainer import NotFinite

log = logging.getLogger(__name__)

RECORD_NAME = "trial.json"
STARTUP_TRIALS = 5  # complete trials before any trial is pruned, as in Optuna
Limits = tuple[float, ...]  # for each epoch, what the best score so far must reach; () for no limit
KEPT = (SCORES_NAME, CLAIM_NAME)  # of what an ordinary training writes
Record = Mapping[str, Any]


class Pruned(Exception):
    """Ends a training whose result no longer matters."""


class Verdict(NamedTuple):
    """What a record means for a study; ``epochs``: the epoch after which the trial ends, None if it does not end
    early."""

    state: State
    score: float | None
    epochs: int | None = None


def limits_of(earlier: Sequence[Trial]) -> Limits:
    """The limits of Optuna's median pruner: for each epoch the median score of the complete trials in ``earlier``.

    Trials of the same round do not count, so results do not depend on which trial was faster.
    """
    complete = [trial.by_epoch for trial in earlier if trial.state == "complete" and trial.by_epoch]
    if len(complete) < STARTUP_TRIALS:
        return ()
    longest = max(map(len, complete))
    return tuple(median(scores[epoch] for scores in complete if len(scores) > epoch) for epoch in range(longest))


def ends_after(by_epoch: Sequence[float], limits: Limits) -> int | None:
    """The number, from 1, of the epoch after which a trial with these scores is pruned; None if it is not.

    >>> ends_after([50.0, 51.0, 60.0], (49.0, 55.0, 58.0)), ends_after([50.0, 57.0], (49.0, 55.0))
    (2, None)
    """
    best_so_far = enumerate(zip(accumulate(by_epoch, max), limits, strict=False), 1)
    return next((epoch for epoch, (best, limit) in best_so_far if best < limit), None)


def place_trial(job: Job, precision: PrecisionName, files: Mapping[str, Files]) -> Job:
    """The job with a folder named after its fingerprint."""
    task = task_of(job.task, job.config)
    found = origin_of(job, task, precision, settings_of(task, job.config, job.encoder), files)
    return replace(job, settings=f"trial-{found['fingerprint'][:12]}")


def judge(record: Record | None, limits: Limits | None) -> Verdict | None:
    """The verdict on a training for a study with these limits (None: no pruning); None if it must be trained."""
    if record is None or (limits is not None and record["by_epoch"] is None):
        return None
    by_epoch, state = record["by_epoch"] or (), record["state"]
    if limits is not None:
        early = by_epoch[:-1] if state == "complete" else by_epoch  # nothing is saved after the last epoch
        if (epochs := ends_after(early, limits)) is not None:
            return Verdict("pruned", by_epoch[epochs - 1], epochs)
    return None if state == "pruned" else Verdict(state, record["score"])


def read_record(folder: Path) -> Record | None:
    """The record of a training; None if it is not finished."""
    path = folder / RECORD_NAME
    if not path.is_file():
        return None
    found = read_json(path)
    if not isinstance(found, dict) or not {"state", "score", "by_epoch", "epochs", "seconds"} <= found.keys():
        raise BadInput(f"{path}: not the record of a trial; delete {folder} and search again")
    return found


def trial_of(place: int, values: Values, job: Job, out: Path, limits: Limits | None) -> Trial | None:
    """The trial of that number from the record of its job; None if it must be trained first."""
    record = read_record(job.folder(out))
    verdict = judge(record, limits)
    if record is None or verdict is None:
        return None
    seconds, by_epoch = record["seconds"], record["by_epoch"] if limits is not None else None
    if verdict.epochs is not None and by_epoch is not None:  # a longer training of another study costs this one less
        seconds, by_epoch = seconds * min(1.0, verdict.epochs / record["epochs"]), by_epoch[: verdict.epochs]
    return Trial(
        place, dict(values), verdict.state, verdict.score, tuple(by_epoch) if by_epoch is not None else None,
        round(seconds, 1), job.settings, record["reason"] if verdict.state == "failed" else None,
    )  # fmt: skip


def try_one(
    job: Job,
    precision: PrecisionName,
    data_folder: Path,
    out: Path,
    limits: Mapping[tuple[str, str], Limits] | None,  # by task and model; None: nothing is pruned
    parts: int = 1,
) -> dict[str, Any]:
    """Train a trial below ``out`` and write its record, or find it; returns it with a line for the log."""
    folder = job.folder(out)
    own = None if limits is None else limits[job.task, job.model]
    record = read_record(folder)
    if judge(record, own) is None:
        for name in (RECORD_NAME, SCORES_NAME):
            (folder / name).unlink(missing_ok=True)
        record = _train(job, precision, data_folder, out, own, parts)
        for path in folder.iterdir():
            if path.is_file() and path.name not in KEPT:
                path.unlink()
        write_json(folder / RECORD_NAME, record)
    assert record is not None
    verdict = judge(record, own)
    assert verdict is not None
    said = "no score" if verdict.score is None else f"{record['metric']} {verdict.score:.2f}"
    return {**record, "log_line": f"{job}: {said} ({verdict.state}), {record['seconds']} s"}


def _train(
    job: Job, precision: PrecisionName, data_folder: Path, out: Path, limits: Limits | None, parts: int
) -> dict[str, Any]:
    """The record of a training: outcome, score, and, if pruning needs them, the scores after its epochs."""
    began, by_epoch, task = time.perf_counter(), list[float](), task_of(job.task, job.config)

    def after_epoch(score: float) -> None:
        by_epoch.append(as_number(score))
        if ends_after(by_epoch, limits or ()) is not None:
            raise Pruned

    state: State = "complete"
    score, reason = None, None
    try:
        result = finetune_one(job, precision, data_folder, out, parts, None if limits is None else after_epoch)
        score = result["scores"][task.select_by]
        by_epoch.append(as_number(score))
    except Pruned:
        state, score = "pruned", by_epoch[-1]
    except NotFinite as error:
        state, reason = "failed", str(error)
    return {
        "task": job.task, "model": job.model, "seed": job.seed, "state": state, "metric": task.select_by,
        "score": score, "reason": reason, "by_epoch": None if limits is None else by_epoch,
        "epochs": settings_of(task, job.config, job.encoder).epochs if state != "pruned" else len(by_epoch),
        "seconds": round(time.perf_counter() - began, 1),
    }  # fmt: skip
