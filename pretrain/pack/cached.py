"""A copy of the token store on each node's own disk: rows lie at random places, which network disks are slow at.

```
CACHE/malmoi-1000/tokens-1f0c…/            a copy; its name is made of the path of the store it is of
CACHE/malmoi-1000/tokens-1f0c….checked     what was read and found whole (see ``check_store``)
CACHE/malmoi-1000/tokens-1f0c….lock        held by the process of the node that looks after the copy
```
The first process of a node to hold the lock makes the copy, whole or not at all, and reads it against the sha256 that
the store was packed with; the others find it so. What cannot be had, for a full disk or for time, costs speed alone:
a warning says why, and the store itself is read.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from corpus.documents.atomic_files import BLOCK_BYTES, atomic_dir
from corpus.documents.errors import BadInput, is_full_disk
from pretrain.pack.store import META_NAME, TokenStore, check_store, files_of, open_store

log = logging.getLogger(__name__)

WITHIN_SECONDS = 20 * 60.0  # less than processes wait for one another
SPARE_BYTES = 1 << 30  # left free on the node's disk
POLL_SECONDS = 0.2


def cached_store(store: TokenStore, tokenizer: Path, cache: Path) -> TokenStore:
    """The copy of ``store`` in the folder ``cache`` of this node, made where there is none, and checked.

    Every process of a node calls it, of any number of runs. Where no copy can be had it warns and returns ``store``.
    """
    name = hashlib.sha256(str(store.folder.resolve()).encode()).hexdigest()[:16]
    copy, ends = cache / f"malmoi-{os.getuid()}" / f"tokens-{name}", time.monotonic() + WITHIN_SECONDS
    try:
        _make_own(copy.parent)
        with _locked(copy.with_name(f"{copy.name}.lock"), ends):
            return _found(store, tokenizer, copy) or _copied(store, tokenizer, copy, ends)
    except (BadInput, OSError) as error:
        reason = "its disk is full" if is_full_disk(error) else str(error)
        log.warning("no copy of %s in %s: %s; reading the store itself", store.folder, cache, reason)
        return store


def _make_own(cache: Path) -> None:
    """Nobody else may write there, or a store could change after it was checked."""
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = cache.stat()
    if found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise BadInput(f"others may write into {cache}")


@contextmanager
def _locked(path: Path, ends: float) -> Iterator[None]:
    """Hold a lock that goes with the process."""
    with path.open("a") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > ends:
                    raise TimeoutError(
                        f"another process of this node has held {path.name} for {WITHIN_SECONDS / 60:.0f} minutes"
                    ) from None
                time.sleep(POLL_SECONDS)
            else:
                break
        yield


def _found(store: TokenStore, tokenizer: Path, copy: Path) -> TokenStore | None:
    """The copy that is there, if it is one of the store as it is now; any other is deleted."""
    if not copy.is_dir():
        return None
    try:
        if (copy / META_NAME).read_bytes() != (store.folder / META_NAME).read_bytes():
            raise BadInput(f"{copy}: a copy of another store")
        return _checked(tokenizer, copy)
    except (BadInput, OSError) as error:
        log.warning("%s; copying it again", error)
        shutil.rmtree(copy)
        return None


def _copied(store: TokenStore, tokenizer: Path, copy: Path, ends: float) -> TokenStore:
    if "files" not in store.meta:
        raise BadInput("packed before stores held sha256, so that a copy could not be checked; pack it again")
    paths = [store.folder / name for name in (*files_of(store.meta), META_NAME)]
    size, free = sum(path.stat().st_size for path in paths), shutil.disk_usage(copy.parent).free
    if free < size + SPARE_BYTES:
        raise BadInput(f"{free / 1e9:.1f} GB free, but {(size + SPARE_BYTES) / 1e9:.1f} needed")
    log.info("copying %.2f GB of tokens to %s", size / 1e9, copy)
    try:
        with atomic_dir(copy) as folder:
            for path in paths:
                _copy(path, folder / path.name, ends)
        return _checked(tokenizer, copy)
    except BaseException:
        shutil.rmtree(copy, ignore_errors=True)
        raise


def _checked(tokenizer: Path, copy: Path) -> TokenStore:
    found = open_store(copy, tokenizer)
    check_store(found, copy.with_name(f"{copy.name}.checked"))
    return found


def _copy(source: Path, target: Path, ends: float) -> None:
    with source.open("rb") as reader, target.open("wb") as writer:
        while block := reader.read(BLOCK_BYTES):
            writer.write(block)
            if time.monotonic() > ends:
                raise TimeoutError(f"copying took more than {WITHIN_SECONDS / 60:.0f} minutes")
