"""A search over tasks x encoders, then the training of the best settings with all training examples.

Each round proposes trials for all studies. Trials are jobs of the same queue (locked, retried, over processes) below
``finetune-search/``. Existing results are reused, so a killed study resumes, and a longer study starts with the trials
of a shorter one. The best of each study is trained over all seeds as settings ``best-of-search``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from corpus.documents.accelerator import PrecisionName, find_device
from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig
from finetune.data.files import read_json
from finetune.data.split import load_data
from finetune.hyperparameters import Hyperparameters
from finetune.queue.fingerprint import Files, deciding
from finetune.queue.jobs import Job, folder_name, read_results
from finetune.queue.progress import failures
from finetune.registry import task_of
from finetune.run import FinetuneInputs, check, finish_jobs, finish_trainings, precision_of
from finetune.search.grid import Trial, Values, propose, round_size, trial_count
from finetune.search.study import (
    BEST_NAME,
    Limits,
    Study,
    limits_of,
    place_trial,
    trial_config,
    trial_of,
    try_one,
    write_study,
)

BEST_SETTINGS = "best-of-search"  # the settings under which the best are trained
Proposal = tuple[int, Values, Job]  # number, combination, training


def run(config: FinetuneConfig, inputs: FinetuneInputs, out: Path, *, workers: int = 1) -> dict[str, Any]:
    """Run the trials of ``config.search`` for each task and encoder; returns counts for the manifest.

    Writes ``<task>/<model>/{trials.jsonl, best.json}`` and a folder with the record of each training. ``BadInput`` if
    trainings failed.
    """
    if starts := [task for task in config.tasks if task in config.start_from]:
        raise BadInput(
            f"finetune.start_from.{starts[0]}: a search tries settings of each task alone; search without it, and "
            "train what was found with it"
        )
    check(config, inputs)
    device = find_device(config.device, "finetune.device")
    precision = precision_of(config, device)
    studies, files = _studies(config, inputs)
    search = config.search
    size, step = trial_count(search), round_size(search)
    for first in range(0, size, step):
        numbers = range(first, min(first + step, size))
        limits = {(s.task, s.model): limits_of(s.trials) if search.prunes else None for s in studies}
        proposed = [
            [(n, values, place_trial(study.job(values), precision, files, limits[study.task, study.model]))
             for n, values in zip(numbers, propose(search, numbers, study.trials), strict=True)]
            for study in studies
        ]  # fmt: skip
        _finish_round(studies, proposed, limits, config, inputs, out, workers, device, precision)
    trials = [trial for study in studies for trial in study.trials]
    counts = {state: sum(trial.state == state for trial in trials) for state in ("complete", "pruned", "failed")}
    return {"studies": len(studies), "trials": len(trials), **counts}


def _studies(config: FinetuneConfig, inputs: FinetuneInputs) -> tuple[list[Study], dict[str, Files]]:
    """The studies, and the files of each task."""
    studies, files = list[Study](), dict[str, Files]()
    for name in config.tasks:
        own = trial_config(config, name)
        task = task_of(name, own)
        data = load_data(task, inputs.data, own)
        files[name] = data.files
        studies += [
            Study(name, model, str(inputs.models[model]), own, task.select_by, data.split) for model in config.models
        ]
    return studies, files


def _finish_round(
    studies: Sequence[Study], proposed: Sequence[Sequence[Proposal]], limits: Mapping[tuple[str, str], Limits | None],
    config: FinetuneConfig, inputs: FinetuneInputs, out: Path, workers: int, device: torch.device,
    precision: PrecisionName,
) -> None:  # fmt: skip
    """Train what has no record, of all studies together, and add the trials of the round to them."""

    def known(study: Study, round_: Sequence[Proposal]) -> list[Trial]:
        found = (trial_of(number, values, job, out) for number, values, job in round_)
        return [trial for trial in found if trial is not None]

    def write(ended: Job | None) -> None:
        for study, round_ in zip(studies, proposed, strict=True):
            if ended is None or (ended.task, ended.model) == (study.task, study.model):
                write_study(study, [*study.trials, *known(study, round_)], config.search, out)

    there = {
        round_[trial.number - round_[0][0]][2]
        for study, round_ in zip(studies, proposed, strict=True)
        for trial in known(study, round_)
    }
    jobs = dict.fromkeys(job for round_ in zip(*proposed, strict=True) for _, _, job in round_)  # the same values once
    left = [job for job in jobs if job not in there]
    work = partial(try_one, precision=precision, data_folder=inputs.data, out=out, limits=limits)
    done = sum(len(study.trials) for study in studies) + len(there)
    _, failed = finish_jobs(left, done, work, out, config, device=device, workers=workers, ended=write)
    write(None)
    if failed:  # later rounds build on this one
        raise BadInput(failures(failed, len(jobs)))
    for study, round_ in zip(studies, proposed, strict=True):
        study.trials += known(study, round_)


def train_best(
    config: FinetuneConfig, inputs: FinetuneInputs, out: Path, *, searched: Path, workers: int = 1
) -> dict[str, Any]:
    """Train the best settings of each study below ``searched`` over all seeds, into ``out``."""
    files = check(config, inputs)
    device = find_device(config.device, "finetune.device")
    precision = precision_of(config, device)
    jobs = _best_jobs(config, inputs, searched, precision, files, out)
    results = finish_trainings(jobs, files, config, inputs, out, workers=workers, device=device, precision=precision)
    return {"results": len(results), "settings": sorted({job.settings for job in jobs})}


def _best_jobs(
    config: FinetuneConfig, inputs: FinetuneInputs, searched: Path, precision: PrecisionName,
    files: Mapping[str, Files], out: Path,
) -> list[Job]:  # fmt: skip
    """A job for each study and seed. If the name is taken by other settings (of another encoder, or of a shorter
    search), it is numbered, so no result is overwritten."""
    taken = {(str(found["task"]), str(found["settings"])): found["recipe"] for _, found in read_results(out)}
    jobs = []
    for task in config.tasks:
        for model in config.models:
            best = _read_best(searched / task / folder_name(model) / BEST_NAME)
            override = Hyperparameters.model_validate(best)
            changes = {"overrides": {**config.overrides, task: override}, "searched_on": config.search.select_on}
            own = config.model_copy(update=changes)
            recipe = deciding(task, own, precision, files)
            names = (f"{BEST_SETTINGS}-{n}" if n > 1 else BEST_SETTINGS for n in range(1, len(taken) + 2))
            name = next(name for name in names if taken.get((task, name), recipe) == recipe)
            taken[task, name] = recipe
            jobs += [Job(task, model, str(inputs.models[model]), seed, own, name) for seed in config.seeds]
    return jobs


def _read_best(path: Path) -> Mapping[str, Any]:
    found = read_json(path) if path.is_file() else None
    best = found.get("best") if isinstance(found, dict) else None
    if not isinstance(best, dict) or not isinstance(best.get("overrides"), dict):
        raise BadInput(f"{path}: no trial with a score, so there is nothing to train; widen finetune.search.space")
    return dict(best["overrides"])
