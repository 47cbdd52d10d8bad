"""The finetune stage: every task x model x seed, trained and scored once.

On a CPU ``workers`` jobs run side by side, one thread each, so results do not depend on their number; a GPU takes one
job after the other. Files and encoders are checked before the first training starts.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, NamedTuple

import torch
from tqdm import tqdm

from corpus.documents.device import PrecisionName, choose_precision, find_device
from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig, place_of
from finetune.data.split import load_data
from finetune.encoder import check_encoder
from finetune.job import Job, finetune_one
from finetune.registry import missing_files, task_of

log = logging.getLogger(__name__)


class FinetuneInputs(NamedTuple):
    """``data``: folder of official files; ``models``: name in the results to encoder folder or Hub name."""

    data: Path
    models: Mapping[str, str]


def run(config: FinetuneConfig, inputs: FinetuneInputs, out: Path, *, workers: int = 1) -> dict[str, Any]:
    """Train and score everything that ``config`` names; finished jobs below ``out`` are kept.

    Writes ``<task>/<model>/seed-<n>/{predictions.jsonl, scores.json}`` and returns counts for the manifest: results,
    examples by task, and what each task's scores are on.
    """
    jobs = plan(config, inputs.models)
    check(config, inputs)
    device = find_device(config.device, "finetune.device")
    precision = _precision(config, device)
    work = partial(finetune_one, config=config, precision=precision, data_folder=inputs.data, out=out)
    results = []
    with tqdm(total=len(jobs), desc="finetune", disable=None) as bar:
        for result in _finish(jobs, work, workers, device.type == "cpu"):
            log.info("%s", describe(result))
            results.append(result)
            bar.update()
    by_task = {result["task"]: result for result in results}
    return {
        "results": len(results),
        "examples": {task: {"train": by_task[task]["n_train"], "dev": by_task[task]["n"]} for task in config.tasks},
        "split": {task: by_task[task]["split"] for task in config.tasks},
    }


def plan(config: FinetuneConfig, models: Mapping[str, str]) -> list[Job]:
    """All jobs, long ones first so that none is left over at the end; ``BadInput`` for two in one folder."""
    jobs = [
        Job(task, name, str(models[name]), seed)
        for task in sorted(config.tasks, key=place_of, reverse=True)  # in the paper the long ones come last
        for name in config.models
        for seed in config.seeds
    ]
    folders = {job.folder(Path()) for job in jobs}
    if len(folders) < len(jobs):
        raise BadInput(f"two of the models {', '.join(config.models)} have the same name on disk; rename one")
    return jobs


def check(config: FinetuneConfig, inputs: FinetuneInputs) -> None:
    """Read every file and open every encoder's configuration and tokenizer once, before anything is trained;
    ``BadInput`` with everything that is missing, or the first thing that is broken."""
    if missing := missing_files(config, inputs.data):
        raise BadInput(
            f"{inputs.data}: missing {', '.join(missing)} (plain or .zst); add them, or name only the tasks that are "
            "there with finetune.tasks=…; tasks in finetune.split_dev may train on a part of their dev file"
        )
    for name in config.models:
        check_encoder(str(inputs.models[name]))
    for task in config.tasks:
        load_data(task_of(task, config), inputs.data, config)


def describe(result: Mapping[str, Any]) -> str:
    """One line for people: ``ynat, model, seed 42: macro_f1 61.20 (trivial 6.13), 500 examples, 8.1 s``."""
    name = result["headline"]
    value, trivial = (
        "undefined" if result[kind][name] is None else f"{result[kind][name]:.2f}" for kind in ("scores", "trivial")
    )
    return (
        f"{result['task']}, {result['model']}, seed {result['seed']}: {name} {value} (trivial {trivial}), "
        f"{result['n']:,} examples, {result['seconds']} s"
    )


def _precision(config: FinetuneConfig, device: torch.device) -> PrecisionName:
    """What all jobs train in, and why, in the log."""
    choice = choose_precision(config.precision, "finetune.precision", device)
    log.info("precision %s: %s", choice.precision, choice.reason)
    if choice.warning:
        log.warning("%s", choice.warning)
    return choice.precision


def _finish(jobs: Sequence[Job], work: Any, workers: int, uses_cpu: bool) -> Iterator[dict[str, Any]]:
    if not uses_cpu:
        yield from map(work, jobs)
    elif workers > 1 and len(jobs) > 1:
        yield from _finish_side_by_side(jobs, work, workers)
    else:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # results on a CPU do not depend on the number of its cores
        try:
            yield from map(work, jobs)
        finally:
            torch.set_num_threads(threads)


def _finish_side_by_side(jobs: Sequence[Job], work: Any, workers: int) -> Iterator[dict[str, Any]]:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(jobs)), mp_context=context, initializer=_prepare_process) as pool:
        futures = [pool.submit(work, job) for job in jobs]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BrokenProcessPool:
            raise BadInput(
                "a process that trained was killed, most likely for want of memory; run the same command again with "
                "fewer workers (workers=1 is the least), it goes on where it stopped"
            ) from None
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _prepare_process() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    torch.set_num_threads(1)
    if (parent := multiprocessing.parent_process()) is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    """A killed parent cannot stop its processes; they would wait for work for ever."""
    wait([sentinel])
    os._exit(1)
