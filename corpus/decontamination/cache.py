"""Built indexes of benchmark files, kept between runs and found again by a digest of all that they depend on.

An entry is a folder of files with a list of their digests, written aside and renamed, so that processes may build the
same one at once. Nothing of it is trusted: the run's folder gets a second name for each file, or a copy where that
cannot be, and what stands there is compared with its digest; an entry that differs is removed and built again. Files
hold numbers and names, never pickles, and are never written in place.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import sys
import time
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from corpus.config import DecontaminateConfig
from corpus.documents.atomic_files import link_or_copy
from corpus.reading.files import name_files

log = logging.getLogger(__name__)

CACHE_VARIABLE = "MALMOI_CACHE"
KEPT_ENTRIES = 4  # about 150 MB each with all of KLUE
STALE_SECONDS = 86_400  # what a killed process left aside goes after a day
LIST_NAME = "digests.json"
CODE = ("sentences/*.py", "folding.py", "reading/*.py", "decontamination/*.py")  # what an index is made by


def cache_folder() -> Path:
    """``$MALMOI_CACHE``, else ``malmoi`` in ``$XDG_CACHE_HOME``, else ``~/.cache/malmoi``."""
    if named := os.environ.get(CACHE_VARIABLE):
        return Path(named).expanduser()
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "malmoi"


def index_digest(config: DecontaminateConfig, benchmarks: Sequence[Path]) -> str:
    """Of the files' names and contents, the settings, and the code that reads and indexes them."""
    found = hashlib.blake2b(digest_size=16)
    settings = [config.model_dump(mode="json"), sys.version_info[:2], unicodedata.unidata_version, sys.byteorder]
    found.update(json.dumps([settings, name_files(benchmarks)], sort_keys=True).encode())
    code = [path for pattern in CODE for path in sorted(Path(__file__).parent.parent.glob(pattern))]
    for path in [*benchmarks, *code]:
        found.update(path.name.encode() + bytes.fromhex(_digest(path)))
    return found.hexdigest()


def fetch_index(digest: str, folder: Path) -> bool:
    """Bring the entry into an existing empty folder; False, and the folder empty, where there is none that is sound."""
    entry = _entries() / digest
    try:
        for name, expected in json.loads((entry / LIST_NAME).read_text("utf-8")).items():
            if Path(name).name != name:
                raise ValueError(f"{name} is no file of it")
            link_or_copy(entry / name, folder / name)
            if _digest(folder / name) != expected:
                raise ValueError(f"{name} is not what was written")
        os.utime(entry)  # the newest are kept
    except (OSError, ValueError, AttributeError, TypeError) as error:
        if entry.exists():
            log.warning("%s: damaged (%s); the benchmark index is built again", entry, error)
        shutil.rmtree(entry, ignore_errors=True)
        for path in folder.iterdir():
            path.unlink()
        return False
    return True


def keep_index(digest: str, folder: Path) -> None:
    """Store the files of a folder; a cache that cannot be written is no error."""
    entries = _entries()
    try:
        entries.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".partial-", dir=entries) as scratch:
            entry = Path(scratch) / digest
            entry.mkdir()
            listed = {path.name: _digest(path) for path in sorted(folder.iterdir())}
            for name in listed:
                link_or_copy(folder / name, entry / name)
            (entry / LIST_NAME).write_text(json.dumps(listed), "utf-8")
            shutil.rmtree(entries / digest, ignore_errors=True)
            entry.rename(entries / digest)
        _forget_oldest(entries)
    except OSError as error:  # disk full, read-only, or another process was first
        log.info("the benchmark index is not kept in %s: %s", entries, error)


def _forget_oldest(entries: Path) -> None:
    by_age = sorted((path.stat().st_mtime, path) for path in entries.iterdir())
    finished = [path for _, path in by_age if not path.name.startswith(".")]
    killed = [path for modified, path in by_age if path.name.startswith(".") and modified < time.time() - STALE_SECONDS]
    for path in [*finished[:-KEPT_ENTRIES], *killed]:
        shutil.rmtree(path, ignore_errors=True)


def _entries() -> Path:
    return cache_folder() / "benchmark-index"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
