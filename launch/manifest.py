"""Manifests: what a stage was made from, and whether its folder is complete.

``started.json`` is written before a stage runs and ``manifest.json`` after it, atomically; only the manifest means
"complete". Both hold the stage's head (its recipe section and the fingerprints of its inputs). A folder with another
head is never reused or overwritten: the run stops and shows the difference. Manifests name files of this machine, so
``malmoi push`` does not send them.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from typing import Any

from corpus.documents.atomic_files import fsync, fsync_tree, read_json, write_json
from corpus.documents.locks import hold_lock
from launch.errors import LaunchError
from launch.numbers import flatten

MANIFEST_NAME = "manifest.json"
STARTED_NAME = "started.json"
RECORDED_PACKAGES = ("malmoi", "torch", "transformers", "tokenizers", "deepspeed", "python-mecab-ko", "numpy")
MAX_HASHED_BYTES = 1 << 30  # of larger files only the size, the first and the last MiB are hashed
MAX_DIFFERENCES = 12  # listed in an error message


@dataclass(frozen=True, slots=True)
class Head:
    """Identity of a stage's result; equal heads mean equal results."""

    stage: str
    settings: Mapping[str, Any]
    inputs: Mapping[str, str]

    @property
    def key(self) -> str:
        """Digest of stage, settings and inputs; the input fingerprint of the next stage."""
        text = json.dumps([self.stage, self.settings, self.inputs], sort_keys=True, ensure_ascii=False)
        return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()

    def as_json(self) -> dict[str, Any]:
        return {"stage": self.stage, "settings": dict(self.settings), "inputs": dict(self.inputs), "key": self.key}


def fingerprint(path: Path) -> str:
    """sha256 of a file's bytes (above 1 GiB: of its size and both ends)."""
    status = path.stat()
    return _fingerprint(path, status.st_size, status.st_mtime_ns, status.st_ino)


@cache
def _fingerprint(path: Path, size: int, *_: int) -> str:
    """Cached while the file is unchanged, as the checks before a run and the run need the same."""
    with path.open("rb") as file:
        if size <= MAX_HASHED_BYTES:
            return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
        digest = hashlib.sha256(str(size).encode() + file.read(1 << 20))
        file.seek(-(1 << 20), os.SEEK_END)
        digest.update(file.read(1 << 20))
    return f"ends-sha256:{digest.hexdigest()}"


def fingerprints(paths: Iterable[Path]) -> dict[str, Callable[[], str]]:
    """For every file, including those of folders: the function that computes its fingerprint, by path."""
    file_lists = (sorted(filter(Path.is_file, path.rglob("*"))) if path.is_dir() else [path] for path in paths)
    return {file.as_posix(): partial(fingerprint, file) for file in chain.from_iterable(file_lists)}


def is_complete(folder: Path, head: Head) -> bool:
    """Whether ``folder`` holds the finished result of ``head``; ``LaunchError`` if it belongs to something else."""
    saved_head = read_head(folder)
    if saved_head is None:
        check_foreign_files(folder)
        return False
    if saved_head["key"] != head.key:
        raise LaunchError(explain_difference(folder, saved_head, head))
    return (folder / MANIFEST_NAME).is_file()


def check_foreign_files(folder: Path) -> None:
    """``LaunchError`` if a folder without a head holds files; another rank may be writing the head right now."""
    present = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if present - {f"{STARTED_NAME}.partial"} and read_head(folder) is None:
        raise LaunchError(f"{folder}: holds files that malmoi did not write; set another --runs folder or name=…")


def has_no_result(folder: Path) -> bool:
    """Whether a stage stopped before it wrote anything except a quarantine; any settings may use its folder."""
    return {path.name for path in folder.iterdir()} <= {STARTED_NAME, "quarantine"}


def explain_difference(folder: Path, saved_head: Mapping[str, Any], head: Head) -> str:
    """The error message about a folder that was made with another head, with the differences."""
    parts = ({key: one[key] for key in ("settings", "inputs") if key in one} for one in (saved_head, head.as_json()))
    old, new = ({k: json.dumps(v, ensure_ascii=False) for k, v in flatten(part, ".").items()} for part in parts)
    pairs = {key: (old.get(key, "absent"), new.get(key, "absent")) for key in sorted(old.keys() | new.keys())}
    lines = [f"  {key}: was {was}, is now {now}" for key, (was, now) in pairs.items() if was != now]
    more = [f"  … and {len(lines) - MAX_DIFFERENCES} more"] if len(lines) > MAX_DIFFERENCES else []
    return "\n".join([
        f"{folder}: made with another recipe or other inputs; delete this folder, or set another name with name=…",
        *lines[:MAX_DIFFERENCES], *more,
    ])  # fmt: skip


def start(folder: Path, head: Head, *, again: bool = False) -> None:
    """Create ``folder`` and write the head, so that a killed run is recognized; ``again``: discard the manifest."""
    write_json(folder / STARTED_NAME, head.as_json())
    if again:
        (folder / MANIFEST_NAME).unlink(missing_ok=True)


def finish(folder: Path, head: Head, counts: Mapping[str, Any], seconds: float, peak_mib: int) -> None:
    """Write the manifest, last and atomically, after all other files of the folder are on the disk."""
    fsync_tree(folder)
    versions = {"python": platform.python_version(), **{name: installed_version(name) for name in RECORDED_PACKAGES}}
    manifest = head.as_json() | {
        "counts": dict(counts),
        "versions": versions,
        "hardware": f"{platform.machine()}, {os.cpu_count()} cores",
        "seconds": round(seconds, 1),
        "peak_memory_mib": peak_mib,
    }
    write_json(folder / MANIFEST_NAME, manifest)
    fsync(folder.parent)
    (folder / STARTED_NAME).unlink(missing_ok=True)


def installed_version(name: str) -> str:
    """The version of an installed package, or "not installed"."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of a finished stage, or None."""
    return _read(folder / MANIFEST_NAME)


def read_head(folder: Path) -> dict[str, Any] | None:
    """The head of a started or finished stage; None if there is none."""
    return _read(folder / MANIFEST_NAME) or _read(folder / STARTED_NAME)


def _read(path: Path) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    value = read_json(path, "delete its folder and run again")
    if not isinstance(value, dict) or not isinstance(value.get("key"), str):
        raise LaunchError(f"{path}: not a file of malmoi (no text in 'key'); delete its folder and run again")
    return value


@contextmanager
def lock_stage(run: Path, stage: str, *, waits: bool = False) -> Iterator[None]:
    """Hold ``.<stage>.lock`` in the run's folder, created if missing, so that one process works on a stage.

    A second process would delete unfinished files of the first, so it ``waits``, or gets a ``LaunchError``.
    """
    run.mkdir(parents=True, exist_ok=True)
    with hold_lock(run / f".{stage}.lock", waits=waits) as is_ours:
        if not is_ours:
            raise LaunchError(f"{run / stage}: another malmoi process works here; wait for it, or add name=OTHER_NAME")
        yield
