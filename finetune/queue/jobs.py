"""The jobs of a run (tasks x models x settings x seeds), their folders, the names of settings, and existing results.

The settings that were trained first are in ``<task>/<model>/seed-1/``, others in ``<task>/<model>/lr-1e-05/seed-1/``,
named after what differs from the first, or in finetune.settings. Results record the settings behind a name, so a later
command with other settings adds results and changes none.

A job with the same fingerprint is not repeated: a digest of the recipe's deciding values, the hyperparameters, the
encoder's files, task and seed. Only values that differ from a default are recorded, so new keys leave old results
valid. A key of one task counts for no other. Changes of the code are noticed only through ``Task.revision``.

A job runs under a lock, so that two processes never train it, and every error becomes an outcome. The lock is released
with the process, so the job of a killed process can be taken at once. After an out-of-memory error the job runs once
more with half the micro-batch: the same global batch, and the same result up to rounding if training draws nothing (no
dropout) and the loss is a mean over examples.
"""

from __future__ import annotations

import gc
import hashlib
import json
import logging
import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from uuid import uuid4

from corpus.documents.accelerator import PrecisionName
from corpus.documents.atomic_files import atomic_write
from corpus.documents.errors import BadInput, first_line, is_full_disk
from corpus.documents.locks import hold_lock, write_lock_holder
from finetune.config import DEFAULT_VALUES, FRESH, FinetuneConfig, Hyperparameters
from finetune.data.files import read_json
from finetune.task_names import sort_key

log = logging.getLogger(__name__)

PREDICTIONS_NAME, SCORES_NAME = "predictions.jsonl", "scores.json"
NAMES_PREFIX = ".names"
FAILED_NAME = "failed.json"  # in the folder of a job on a cluster: why it has no result
RESULTS = ("*/*/seed-*/scores.json", "*/*/*/seed-*/scores.json")
LONGEST_NAME = 60  # characters of a settings folder
CLAIM_NAME = "claim.lock"
NO_MEMORY = ("DefaultCPUAllocator: can't allocate memory", "DefaultCPUAllocator: not enough memory", "out of memory")
MORE_MEMORY = "free memory, run fewer workers, or lower max_tokens or batch_size in finetune.overrides"
Recipe = Mapping[str, Any]  # as ``fingerprint.deciding``


class NamedRecipe(NamedTuple):
    """The name of some settings of a task."""

    task: str
    name: str
    recipe: Recipe


@dataclass(frozen=True, slots=True)
class Job:
    """What to train: a task, an encoder by its name in the results and its folder or Hub name, and a seed.

    ``settings`` names the folder of its settings, empty for the first ones; ``config`` holds them.
    """

    task: str
    model: str
    encoder: str
    seed: int
    config: FinetuneConfig = field(compare=False)
    settings: str = ""

    def folder(self, out: Path) -> Path:
        """``<task>/<model>/<settings>/seed-<n>``; a path or Hub name becomes one folder name."""
        return out / self.task / folder_name(self.model) / self.settings / f"seed-{self.seed}"

    def __str__(self) -> str:
        return ", ".join(part for part in (self.task, self.model, self.settings, f"seed {self.seed}") if part)


def folder_name(name: str) -> str:
    """One folder name from a path, a Hub name or settings."""
    return re.sub(r"[^\w.]+", "-", name).strip("-.")


def plan(config: FinetuneConfig, models: Mapping[str, str]) -> list[Job]:
    """All jobs, long ones first, so that none is left over at the end. ``BadInput`` if two have the same folder."""
    configs = {settings: config.with_settings(settings) for settings in ("", *config.settings)}
    jobs = [
        Job(task, name, str(models[name]), seed, own, settings)
        for task in sorted(config.tasks, key=sort_key, reverse=True)
        for name in config.models  # above: in the paper the long ones come last
        for settings, own in configs.items()
        for seed in config.seeds
    ]
    if len({job.folder(Path()) for job in jobs}) < len(jobs):
        raise BadInput(f"two of the models {', '.join(config.models)} have the same name on disk; rename one")
    if taken := {folder_name(name) for name in config.ensembles} & {folder_name(name) for name in config.models}:
        raise BadInput(f"finetune.ensembles: {min(taken)} is the name of a model on disk; rename the ensemble")
    return jobs


def iter_results(out: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Every result below ``out`` with its file; results of older releases are skipped."""
    for path in sorted(path for pattern in RESULTS for path in out.glob(pattern)):
        result = read_json(path)
        if isinstance(result, dict) and isinstance(result.get("recipe"), dict):
            yield path, result


def name_settings(
    jobs: Sequence[Job], recipes: Mapping[Job, Recipe], out: Path, of_others: Iterable[NamedRecipe] = ()
) -> tuple[list[Job], list[NamedRecipe]]:
    """The jobs in the folders of their settings, and the names of these settings.

    Settings that have results, or a name by another command (``of_others``), keep their name. ``BadInput`` if
    ``finetune.settings`` uses a name that is taken.
    """
    known: dict[str, dict[str, Recipe]] = {}
    single = (result for _, result in iter_results(out) if "members" not in result)  # ensembles have no settings
    there = (NamedRecipe(result["task"], result["settings"], result["recipe"]) for result in single)
    for task, name, recipe in chain(there, of_others):
        known.setdefault(task, {}).setdefault(name, recipe)
    named: dict[Job, Job] = {}  # as it was to as it is called
    for job in jobs:
        taken = known.setdefault(job.task, {})
        name = _name_of(job, recipes[job], taken)
        taken.setdefault(name, recipes[job])
        named[job] = replace(job, settings=name)
    used = dict.fromkeys((job.task, job.settings) for job in named.values())
    return list(dict.fromkeys(named.values())), [NamedRecipe(task, name, known[task][name]) for task, name in used]


def _name_of(job: Job, recipe: Recipe, taken: Mapping[str, Recipe]) -> str:
    if same := [name for name, other in taken.items() if other == recipe]:
        return same[0]
    if job.settings not in taken:
        return job.settings
    if job.settings:
        raise BadInput(
            f"finetune.settings.{job.settings}: {job.task} has results of other settings under this name "
            f"({_difference(taken[job.settings], recipe)} now); give these another name, or delete those"
        )
    name = folder_name(_difference(taken[""], recipe))
    short = hashlib.blake2b(json.dumps(recipe, sort_keys=True).encode(), digest_size=4).hexdigest()
    return name if len(name) <= LONGEST_NAME and name not in taken else f"{name[:LONGEST_NAME].rstrip('-.')}-{short}"


def _difference(old: Recipe, new: Recipe) -> str:
    """``lr 1e-05, data 3f2a91c0``: the new values of what differs."""
    before, after = _flat(old), _flat(new)
    changed = [key for key in sorted(before.keys() | after.keys()) if before.get(key) != after.get(key)]
    return ", ".join(f"{key} {after.get(key, 'default')}" for key in changed)


def _flat(recipe: Recipe) -> dict[str, str]:
    """Overrides by name, and one short digest of the data."""
    flat = {key: value for key, value in recipe.items() if key not in ("overrides", "data")}
    flat |= recipe.get("overrides", {})
    data = json.dumps(recipe.get("data"), sort_keys=True).encode()
    plain = {key: value if isinstance(value, str) else json.dumps(value, sort_keys=True) for key, value in flat.items()}
    plain = {key: value.replace("e+", "e") for key, value in plain.items()}  # in a folder's name 1e+25 became 1e-25
    return {**plain, "data": hashlib.blake2b(data, digest_size=4).hexdigest()}


@contextmanager
def named(jobs: Sequence[Job], recipes: Mapping[Job, Recipe], out: Path) -> Iterator[list[Job]]:
    """The jobs as ``name_settings`` names them; until the end of the block no other command uses these names for other
    settings. ``BadInput`` as there.

    ```
    .names.lock             held while a command reads all names and adds its own
    .names-<digest>.json    the names of a running command
    .names-<digest>.lock    held as long as that command runs; names of a killed command are dropped
    ```
    """
    out.mkdir(parents=True, exist_ok=True)
    own = out / f"{NAMES_PREFIX}-{uuid4().hex}.json"
    with hold_lock(own.with_suffix(".lock")):
        try:
            with hold_lock(out / f"{NAMES_PREFIX}.lock", waits=True):
                of_others = (NamedRecipe(*fields) for path in _alive(out) for fields in read_json(path))
                named_jobs, names = name_settings(jobs, recipes, out, of_others)
                atomic_write(own, json.dumps(names, ensure_ascii=False))
            yield named_jobs
        finally:
            with hold_lock(out / f"{NAMES_PREFIX}.lock", waits=True):  # nobody is reading
                _forget(own)


def _alive(out: Path) -> Iterator[Path]:
    """Names of running commands; those of killed commands are removed."""
    for path in sorted(out.glob(f"{NAMES_PREFIX}-*.json")):
        with hold_lock(path.with_suffix(".lock")) as is_dead:
            if is_dead:
                _forget(path)
            else:
                yield path


def _forget(path: Path) -> None:
    for doomed in (path, path.with_suffix(".lock")):
        doomed.unlink(missing_ok=True)


class Work(Protocol):
    """Finishes a job with its steps divided into ``parts``, or finds it finished; returns its ``scores.json``."""

    def __call__(self, job: Job, *, parts: int) -> dict[str, Any]: ...


class Outcome(NamedTuple):
    """A ``result``, or the reason why there is none (``failure``); neither: another process has the job."""

    job: Job
    result: dict[str, Any] | None = None
    failure: str | None = None
    trace: str = ""  # of an unexpected error
    stops: OSError | None = None  # no other job would do better: a full disk


@contextmanager
def claim(folder: Path) -> Iterator[bool]:
    """Whether this process now holds the job of this folder; False if another process does."""
    folder.mkdir(parents=True, exist_ok=True)
    with hold_lock(folder / CLAIM_NAME) as is_ours:
        if is_ours:
            write_lock_holder(folder / CLAIM_NAME)  # for ``malmoi status``
        yield is_ours
        if is_ours:  # finished, and whoever opened the file before it went will find that
            with suppress(OSError):
                (folder / CLAIM_NAME).unlink()


def attempt(work: Work, job: Job, out: Path) -> Outcome:
    """Lock a job below ``out`` and run it; every error becomes an outcome."""
    try:
        with claim(job.folder(out)) as is_ours:
            return Outcome(job, _in_memory(work, job)) if is_ours else Outcome(job)
    except BadInput as error:
        return Outcome(job, failure=str(error))
    except Exception as error:
        if is_full_disk(error):
            stops = error if isinstance(error, OSError) else OSError(28, "no space left on the disk")
            return Outcome(job, failure=str(error), stops=stops)
        if is_out_of_memory(error):
            return Outcome(job, failure=f"out of memory with half the micro-batch, too ({first_line(error)})")
        return Outcome(job, failure=first_line(error), trace=traceback.format_exc())


def _in_memory(work: Work, job: Job) -> dict[str, Any]:
    try:
        return work(job, parts=1)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        log.warning("%s: out of memory (%s); once more with half the micro-batch", job, first_line(error))
    gc.collect()  # after the error, which holds the tensors
    torch = sys.modules.get("torch")
    if torch is not None and torch.accelerator.is_available():
        torch.get_device_module(torch.accelerator.current_accelerator()).empty_cache()
    return work(job, parts=2)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error of torch (any device) or Python means out of memory; does not import torch."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"MemoryError", "OutOfMemoryError"}) or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in NO_MEMORY)
    )


# known in another way: by the job itself, the digests of the files, the resolved hyperparameters
AXES = {"data", "tasks", "models", "seeds", "settings", "overrides", "precision"}
WHOLE = {"lora"}  # a map, but not one by task; recorded with the defaults of its keys
NO_PREDICTION = {"device", "price_per_hour", "save", "search", "keep_scores", "ensembles"}  # these change none
ABOUT_RUNS = {"manifest.json", "started.json"}  # in the folder of a run's own model; they hold times
SPLITS = ("train", "dev", "test")
OF_ONE_TASK = {
    "pos_tags": "klue-dp", "mrc_empty_windows": "klue-mrc", "mrc_threshold_share": "klue-mrc",
    "re_markers": "klue-re", "re_restricted": "klue-re",
}  # fmt: skip
WHERE_DEV_IS_DIVIDED = {"split_dev"}
RECORDED_AS = {"custom": "own"}  # key of the recipe to its name in results

Files = Mapping[str, Mapping[str, str]]  # split to name, sha256 and version, as ``Data.files``


def deciding(task: str, config: FinetuneConfig, precision: PrecisionName, files: Mapping[str, Files]) -> dict[str, Any]:
    """What of the recipe and the data decides the results of a task, as JSON; hyperparameters only if they are
    overridden. ``files``: by task."""
    own = files.get(task, {})
    changed = config.model_dump(mode="json", exclude=AXES | NO_PREDICTION | WHOLE, exclude_defaults=True)
    settings = {RECORDED_AS.get(k, k): _for_task(task, v) for k, v in changed.items() if _counts(k, task, own)}
    override = config.overrides.get(task)
    parts: dict[str, Any] = {
        **settings,
        **config.model_dump(mode="json", include=WHOLE, exclude_none=True),
        **({"precision": precision} if precision != "fp32" else {}),
        "overrides": override.chosen() if override else {},
        "data": {split: file["sha256"] for split, file in own.items()},
    }
    return {key: value for key, value in parts.items() if value is not None and value != {}}


def _counts(key: str, task: str, files: Files) -> bool:
    if key in WHERE_DEV_IS_DIVIDED:
        return "train" not in files
    return OF_ONE_TASK.get(key, task) == task


def _for_task(task: str, value: Any) -> Any:
    """The task's part of a map by task, without file paths; for a list of tasks whether it is in the list, or None."""
    if isinstance(value, dict):
        part = value.get(task)
        return {key: v for key, v in part.items() if key not in SPLITS} if isinstance(part, dict) else part
    return (task in value or None) if isinstance(value, list) else value


def fingerprint_of(
    task: str, seed: int, encoder: str, recipe: Mapping[str, Any], hyperparameters: Hyperparameters, revision: int = 1
) -> str:  # fmt: skip
    """Digest of everything that decides a result; ``encoder`` from ``digest``, ``recipe`` from ``deciding``,
    ``revision`` of the task's code."""
    chosen = {key: value for key, value in hyperparameters if value != DEFAULT_VALUES[key]}
    rest = {key: value for key, value in recipe.items() if key != "overrides"}
    more = [revision] if revision > 1 else []
    text = json.dumps([task, seed, encoder, rest, chosen, *more], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def digest(name: str) -> str:
    """Digest of the files of an encoder, so that a result identifies its encoder; a Hub name is its own digest."""
    folder = Path(name.removeprefix(FRESH))
    if not folder.is_dir():
        return name
    read = {".json", ".txt"} if name.startswith(FRESH) else {".json", ".safetensors", ".txt"}
    paths = sorted(p for p in folder.iterdir() if p.suffix in read and p.name not in ABOUT_RUNS)
    return _digest(tuple((p, p.stat().st_size, p.stat().st_mtime_ns, p.stat().st_ino) for p in paths))


@lru_cache(maxsize=64)
def _digest(files: tuple[tuple[Path, int, int, int], ...]) -> str:
    """By content; files that have not changed since are not read again."""
    state = hashlib.blake2b(digest_size=16)
    for path, *_ in files:
        with path.open("rb") as file:
            state.update(f"{path.name}:{hashlib.file_digest(file, 'sha256').hexdigest()};".encode())
    return state.hexdigest()
