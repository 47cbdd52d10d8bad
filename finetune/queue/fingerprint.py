"""What decides a job's result, as ``scores.json`` records it: a job with the same record is not repeated.

The fingerprint is a digest of the recipe's deciding values, the hyperparameters, the encoder's files, task and seed.
Only values that differ from a default are recorded, so new keys leave old results valid. A key of one task counts for
no other. Changes of the code are noticed only through ``Task.revision``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from corpus.documents.accelerator import PrecisionName
from finetune.config import DEFAULT_VALUES, FRESH, FinetuneConfig, Hyperparameters

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
    kept = {RECORDED_AS.get(k, k): _for_task(task, v) for k, v in changed.items() if _counts(k, task, own)}
    override = config.overrides.get(task)
    parts: dict[str, Any] = {
        **kept,
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
        found = value.get(task)
        return {key: v for key, v in found.items() if key not in SPLITS} if isinstance(found, dict) else found
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
    found = sorted(p for p in folder.iterdir() if p.suffix in read and p.name not in ABOUT_RUNS)
    return _digest(tuple((p, p.stat().st_size, p.stat().st_mtime_ns, p.stat().st_ino) for p in found))


@lru_cache(maxsize=64)
def _digest(files: tuple[tuple[Path, int, int, int], ...]) -> str:
    """By content; files that have not changed since are not read again."""
    state = hashlib.blake2b(digest_size=16)
    for path, *_ in files:
        with path.open("rb") as file:
            state.update(f"{path.name}:{hashlib.file_digest(file, 'sha256').hexdigest()};".encode())
    return state.hexdigest()
