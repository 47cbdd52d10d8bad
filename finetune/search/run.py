"""A search over tasks x encoders, then the training of the best settings with all training examples.

A study is a task and an encoder. Its trials are ordinary trainings of the same queue (locked, retried, over processes)
below ``finetune-search/``. Only a record of each is kept, ``<task>/<model>/trial-<fingerprint>/seed-<n>/trial.json``.
Existing records are reused, so a killed study resumes, and a longer study starts with the trials of a shorter one.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from corpus.documents.accelerator import PrecisionName
from corpus.documents.atomic_files import write_json
from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig, Hyperparameters
from finetune.data.files import read_json, write_json_lines
from finetune.data.split import load_data
from finetune.job import Hide, finetune_one, origin_of, settings_of
from finetune.queue.jobs import CLAIM_NAME, SCORES_NAME, Files, Job, deciding, folder_name, iter_results
from finetune.queue.progress import failures
from finetune.registry import task_of
from finetune.run import FinetuneInputs, Prepared, finish_jobs, finish_trainings, prepare
from finetune.search.grid import Values, combinations, fixed_values, search_values, trial_count
from finetune.train.trainer import NotFinite

TRIALS_NAME, BEST_NAME, RECORD_NAME = "trials.jsonl", "best.json", "trial.json"
KEPT = (SCORES_NAME, CLAIM_NAME)  # of the files that an ordinary training writes
STATES = ("complete", "failed")
BEST_SETTINGS = "best-of-search"  # the settings under which the best are trained


@dataclass(frozen=True, eq=False)
class Study:
    """The trials of a task and an encoder; ``config`` is that of all trials, without the values of any."""

    task: str
    model: str
    encoder: str
    config: FinetuneConfig
    metric: str
    scored_on: str
    files: Files
    precision: PrecisionName

    def folder(self, out: Path) -> Path:
        return out / self.task / folder_name(self.model)

    def overrides(self, values: Values) -> Hyperparameters:
        """The hyperparameters of a trial with these values."""
        return self.config.overrides.get(self.task, Hyperparameters()).replaced(**values)

    def job(self, values: Values) -> Job:
        """The training of a trial."""
        overrides = {**self.config.overrides, self.task: self.overrides(values)}
        config = self.config.model_copy(update={"overrides": overrides})
        job, task = Job(self.task, self.model, self.encoder, config.seeds[0], config), task_of(self.task, config)
        settings = settings_of(task, config, self.encoder)
        origin = origin_of(job, task, self.precision, settings, {self.task: self.files})
        return replace(job, settings=f"trial-{origin['fingerprint'][:12]}")


def run(config: FinetuneConfig, inputs: FinetuneInputs, out: Path, *, workers: int = 1) -> dict[str, Any]:
    """Run the trials of ``config.search`` for each task and encoder; returns counts for the manifest.

    ``BadInput`` if trainings failed for another reason than an infinite loss.
    """
    ready, values = prepare(config, inputs), combinations(config.search)
    studies = []
    for name in config.tasks:
        own = trial_config(config, name)
        task = task_of(name, own)
        data = load_data(task, inputs.data, own)
        about = own, task.select_by, data.split, data.files, ready.precision
        studies += [Study(name, model, str(inputs.models[model]), *about) for model in config.models]
    trials = {study: [study.job(combination) for combination in values] for study in studies}
    jobs = dict.fromkeys(job for of_number in zip(*trials.values(), strict=True) for job in of_number)
    left = [job for job in jobs if read_record(job.folder(out)) is None]
    work = partial(try_one, precision=ready.precision, data_folder=inputs.data, out=out, hide=inputs.hide)
    done = len(jobs) - len(left)
    try:
        _, failed = finish_jobs(left, done, work, out, config, device=ready.device, workers=workers)
    finally:
        for study, of_study in trials.items():
            write_study(study, _finished(values, of_study, out), out)
    if failed:
        raise BadInput(failures(failed, len(jobs)))
    states = Counter(trial["state"] for of_study in trials.values() for trial in _finished(values, of_study, out))
    return {"studies": len(trials), "trials": states.total(), **{state: states[state] for state in STATES}}


def trial_config(config: FinetuneConfig, task: str) -> FinetuneConfig:
    """The configuration of all trials of a task: scored on a part of train or on dev, with nothing saved."""
    search, before = config.search, config.overrides.get(task, Hyperparameters())
    if "max_tokens" not in before.model_fields_set:
        before = before.replaced(**fixed_values(search, task, is_custom=task in config.custom))
    return config.model_copy(
        update={
            "held_out_share": search.held_out_share if search.select_on == "train" else 0.0,
            "searched_on": None,
            "save": "none",
            "overrides": {**config.overrides, task: before},
        }
    )


def _finished(values: Sequence[Values], jobs: Sequence[Job], out: Path) -> list[dict[str, Any]]:
    """The finished trials of a study, by number."""
    records = ((number, read_record(job.folder(out))) for number, job in enumerate(jobs))
    return [
        {
            "number": number, "values": values[number], "state": record["state"], "score": record["score"],
            "seconds": record["seconds"], "folder": jobs[number].settings,
            **({"reason": record["reason"]} if record["reason"] else {}),
        }
        for number, record in records if record is not None
    ]  # fmt: skip


def write_study(study: Study, trials: Sequence[Mapping[str, Any]], out: Path) -> None:
    """Write ``trials.jsonl`` and ``best.json``; the best is the first of the highest score."""
    about = {"metric": study.metric, "scored_on": study.scored_on}
    write_json_lines(study.folder(out) / TRIALS_NAME, ({**trial, **about} for trial in trials))
    search, states = study.config.search, Counter(trial["state"] for trial in trials)
    scored = [trial for trial in trials if trial["score"] is not None]
    best = max(scored, key=lambda trial: (trial["score"], -trial["number"]), default=None)
    summary = {
        "task": study.task, "model": study.model, **about, "selected_on": search.select_on,
        "search": {**search.model_dump(mode="json"), "space": search_values(search), "size": trial_count(search)},
        "trials": len(trials), **{state: states[state] for state in STATES},
        "seconds": round(sum(trial["seconds"] for trial in trials), 1),
        "best": best and {**{key: best[key] for key in ("number", "values", "score")},
                          "overrides": study.overrides(best["values"]).chosen()},
    }  # fmt: skip
    write_json(study.folder(out) / BEST_NAME, summary)


def read_record(folder: Path) -> dict[str, Any] | None:
    """The record of a trial; None if it is not finished."""
    path = folder / RECORD_NAME
    if not path.is_file():
        return None
    record = read_json(path)
    if not isinstance(record, dict) or not {"state", "score", "reason", "seconds"} <= record.keys():
        raise BadInput(f"{path}: not the record of a trial; delete {folder} and search again")
    return record


def try_one(
    job: Job, precision: PrecisionName, data_folder: Path, out: Path, parts: int = 1, hide: Hide | None = None
) -> dict[str, Any]:
    """Train a trial below ``out`` and write its record, or read it; returns it with a line for the log."""
    folder, metric = job.folder(out), task_of(job.task, job.config).select_by
    if (record := read_record(folder)) is None:
        (folder / SCORES_NAME).unlink(missing_ok=True)
        start, score, reason = time.perf_counter(), None, None
        try:
            score = finetune_one(job, precision, data_folder, out, parts, hide, samples=0)["scores"][metric]
        except NotFinite as error:
            reason = str(error)
        for path in folder.iterdir():
            if path.is_file() and path.name not in KEPT:
                path.unlink()
        record = {
            "task": job.task, "model": job.model, "seed": job.seed, "state": "failed" if reason else "complete",
            "metric": metric, "score": score, "reason": reason, "seconds": round(time.perf_counter() - start, 1),
        }  # fmt: skip
        write_json(folder / RECORD_NAME, record)
    score_text = "no score" if record["score"] is None else f"{metric} {record['score']:.2f}"
    return {**record, "log_line": f"{job}: {score_text} ({record['state']}), {record['seconds']} s"}


def train_best(
    config: FinetuneConfig, inputs: FinetuneInputs, out: Path, *, searched: Path, workers: int = 1
) -> dict[str, Any]:
    """Train the best settings of each study below ``searched`` over all seeds, into ``out``."""
    ready = prepare(config, inputs)
    jobs = _best_jobs(config, inputs, searched, ready, out)
    results = finish_trainings(jobs, ready, config, inputs, out, workers=workers)
    return {"results": len(results), "settings": sorted({job.settings for job in jobs})}


def _best_jobs(config: FinetuneConfig, inputs: FinetuneInputs, searched: Path, ready: Prepared, out: Path) -> list[Job]:
    """A job for each study and seed. If the name is taken by other settings (of another encoder, or of a shorter
    search), it is numbered, so no result is overwritten."""
    taken = {(str(result["task"]), str(result["settings"])): result["recipe"] for _, result in iter_results(out)}
    jobs = []
    for task in config.tasks:
        for model in config.models:
            best = _read_best(searched / task / folder_name(model) / BEST_NAME)
            override = Hyperparameters.model_validate(best)
            changes = {"overrides": {**config.overrides, task: override}, "searched_on": config.search.select_on}
            own = config.model_copy(update=changes)
            recipe = deciding(task, own, ready.precision, ready.files)
            names = (f"{BEST_SETTINGS}-{n}" if n > 1 else BEST_SETTINGS for n in range(1, len(taken) + 2))
            name = next(name for name in names if taken.get((task, name), recipe) == recipe)
            taken[task, name] = recipe
            jobs += [Job(task, model, str(inputs.models[model]), seed, own, name) for seed in config.seeds]
    return jobs


def _read_best(path: Path) -> Mapping[str, Any]:
    content = read_json(path) if path.is_file() else None
    best = content.get("best") if isinstance(content, dict) else None
    if not isinstance(best, dict) or not isinstance(best.get("overrides"), dict):
        raise BadInput(f"{path}: no trial with a score, so there is nothing to train; widen finetune.search.space")
    return dict(best["overrides"])
