"""One study: a task and an encoder, its trials in order, and its two result files.

A trial is an ordinary training of which only a record is kept, in a folder named after its fingerprint and the limits
of pruning, so equal trials are trained once. ``trials.jsonl`` has a line for each finished trial; ``best.json`` has the
best trial and the settings of the study.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from statistics import median
from typing import Any

from corpus.documents.accelerator import PrecisionName
from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig, SearchConfig
from finetune.data.files import read_json, write_json, write_json_lines
from finetune.hyperparameters import Hyperparameters
from finetune.job import finetune_one, origin_of, settings_of
from finetune.queue.attempts import CLAIM_NAME
from finetune.queue.fingerprint import Files
from finetune.queue.jobs import SCORES_NAME, Job, folder_name
from finetune.registry import task_of
from finetune.search.grid import (
    State,
    Trial,
    Values,
    as_number,
    digest_of,
    fixed_values,
    search_values,
    trial_count,
)
from finetune.train.trainer import NotFinite

TRIALS_NAME, BEST_NAME = "trials.jsonl", "best.json"
RECORD_NAME = "trial.json"
STARTUP_TRIALS = 5  # complete trials before any trial is pruned, as in Optuna
Limits = tuple[float, ...]  # for each epoch, what the best score so far must reach; () for no limit
KEPT = (SCORES_NAME, CLAIM_NAME)  # of what an ordinary training writes
Record = Mapping[str, Any]


@dataclass
class Study:
    """What is searched, and the trials of the finished rounds."""

    task: str
    model: str
    encoder: str
    config: FinetuneConfig  # that of its trials, without the values of any
    metric: str
    scored_on: str
    trials: list[Trial] = field(default_factory=list)

    def folder(self, out: Path) -> Path:
        return out / self.task / folder_name(self.model)

    def overrides(self, values: Values) -> Hyperparameters:
        """The hyperparameters of a trial with these values."""
        before = self.config.overrides.get(self.task, Hyperparameters())
        return before.replaced(**values)

    def job(self, values: Values) -> Job:
        """The training of a trial."""
        overrides = {**self.config.overrides, self.task: self.overrides(values)}
        config = self.config.model_copy(update={"overrides": overrides})
        return Job(self.task, self.model, self.encoder, config.seeds[0], config)


def trial_config(config: FinetuneConfig, task: str) -> FinetuneConfig:
    """The configuration of all trials of a task: scored on a part of train or on dev, with nothing saved."""
    search = config.search
    fixed = fixed_values(search, task, is_custom=task in config.custom)
    before = config.overrides.get(task, Hyperparameters())
    if "max_tokens" not in before.model_fields_set:
        before = before.replaced(**fixed)
    return config.model_copy(
        update={
            "held_out_share": search.held_out_share if search.select_on == "train" else 0.0,
            "searched_on": None, "save": "none", "bootstrap_samples": 0, "predict_test": False,
            "overrides": {**config.overrides, task: before},
        }
    )  # fmt: skip


def best_of(trials: Sequence[Trial]) -> Trial | None:
    """The complete trial with the highest score, the first of equals; None if none is complete."""
    complete = [trial for trial in trials if trial.state == "complete" and trial.score is not None]
    return max(complete, key=lambda trial: (trial.numeric_score, -trial.number), default=None)


def write_study(study: Study, trials: Sequence[Trial], search: SearchConfig, out: Path) -> None:
    """Write ``trials.jsonl`` and ``best.json`` from the trials known so far."""
    folder = study.folder(out)
    folder.mkdir(parents=True, exist_ok=True)
    write_json_lines(folder / TRIALS_NAME, (_line(study, trial) for trial in trials))
    write_json(folder / BEST_NAME, _summary(study, trials, search))


def _line(study: Study, trial: Trial) -> dict[str, Any]:
    fields = {key: value for key, value in trial._asdict().items() if value is not None or key == "score"}
    return {**fields, "metric": study.metric, "scored_on": study.scored_on}


def _summary(study: Study, trials: Sequence[Trial], search: SearchConfig) -> dict[str, Any]:
    best = best_of(trials)
    states = [trial.state for trial in trials]
    return {
        "task": study.task, "model": study.model, "metric": study.metric, "scored_on": study.scored_on,
        "selected_on": search.select_on,
        "search": {**search.model_dump(mode="json"), "space": search_values(search), "size": trial_count(search)},
        "trials": len(trials), **{state: states.count(state) for state in ("complete", "pruned", "failed")},
        "seconds": round(sum(trial.seconds for trial in trials), 1),
        "best": None if best is None else {"number": best.number, "values": best.values, "score": best.score,
                                           "overrides": study.overrides(best.values).chosen()},
    }  # fmt: skip


class Pruned(Exception):
    """Ends a training whose result no longer matters."""


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


def place_trial(job: Job, precision: PrecisionName, files: Mapping[str, Files], limits: Limits | None) -> Job:
    """The job with a folder named after its fingerprint and the limits (None: no pruning)."""
    task = task_of(job.task, job.config)
    fingerprint = str(origin_of(job, task, precision, settings_of(task, job.config, job.encoder), files)["fingerprint"])
    if limits is not None:
        fingerprint = digest_of(fingerprint, limits).hex()
    return replace(job, settings=f"trial-{fingerprint[:12]}")


def read_record(folder: Path) -> Record | None:
    """The record of a training; None if it is not finished."""
    path = folder / RECORD_NAME
    if not path.is_file():
        return None
    found = read_json(path)
    if not isinstance(found, dict) or not {"state", "score", "by_epoch", "reason", "seconds"} <= found.keys():
        raise BadInput(f"{path}: not the record of a trial; delete {folder} and search again")
    return found


def trial_of(number: int, values: Values, job: Job, out: Path) -> Trial | None:
    """The trial of that number from the record of its job; None if it must be trained first."""
    record = read_record(job.folder(out))
    if record is None:
        return None
    by_epoch = None if record["by_epoch"] is None else tuple(record["by_epoch"])
    return Trial(
        number, dict(values), record["state"], record["score"], by_epoch, record["seconds"], job.settings,
        record["reason"],
    )  # fmt: skip


def try_one(
    job: Job,
    precision: PrecisionName,
    data_folder: Path,
    out: Path,
    limits: Mapping[tuple[str, str], Limits | None],  # by task and model; None: nothing is pruned
    parts: int = 1,
) -> dict[str, Any]:
    """Train a trial below ``out`` and write its record, or read it; returns it with a line for the log."""
    folder = job.folder(out)
    record = read_record(folder)
    if record is None:
        (folder / SCORES_NAME).unlink(missing_ok=True)
        record = _train(job, precision, data_folder, out, limits[job.task, job.model], parts)
        for path in folder.iterdir():
            if path.is_file() and path.name not in KEPT:
                path.unlink()
        write_json(folder / RECORD_NAME, record)
    score = "no score" if record["score"] is None else f"{record['metric']} {record['score']:.2f}"
    return {**record, "log_line": f"{job}: {score} ({record['state']}), {record['seconds']} s"}


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
        "seconds": round(time.perf_counter() - began, 1),
    }  # fmt: skip
