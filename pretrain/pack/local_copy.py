"""A copy of the token store on the local disk of each node, because network disks are slow at random reads.

```
CACHE/malmoi-1000/tokens-1f0c…/            the copy; its name is a hash of the path of the store
CACHE/malmoi-1000/tokens-1f0c….checked     record of a successful check (see ``check_store``)
CACHE/malmoi-1000/tokens-1f0c….lock        held by the process that makes or checks the copy
```
If there is no copy, because the disk is full or copying takes too long, a warning says why, and the store is read.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import time
from pathlib import Path

from filelock import FileLock

from corpus.documents.atomic_files import BLOCK_BYTES, atomic_dir
from corpus.documents.errors import BadInput, is_full_disk
from pretrain.pack.store import FILES, META_NAME, TokenStore, check_store, open_store

log = logging.getLogger(__name__)

WITHIN_SECONDS = 20 * 60.0  # less than the timeout of collectives
SPARE_BYTES = 1 << 30  # left free on the node's disk


def cached_store(store: TokenStore, tokenizer: Path, cache: Path) -> TokenStore:
    """The checked copy of ``store`` in the folder ``cache`` of this node; it is made if there is none.

    All processes of a node call it, of any number of runs. If no copy is possible, it warns and returns ``store``.
    """
    name = hashlib.sha256(str(store.folder.resolve()).encode()).hexdigest()[:16]
    copy, ends = cache / f"malmoi-{os.getuid()}" / f"tokens-{name}", time.monotonic() + WITHIN_SECONDS
    try:
        copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = copy.parent.stat()  # other users must not change a copy after its check
        if status.st_uid != os.getuid() or status.st_mode & 0o022:
            raise BadInput(f"other users can write to {copy.parent}")
        with FileLock(copy.with_name(f"{copy.name}.lock"), timeout=WITHIN_SECONDS):
            return _found(store, tokenizer, copy) or _copied(store, tokenizer, copy, ends)
    except (BadInput, OSError) as error:
        reason = "its disk is full" if is_full_disk(error) else str(error).rstrip(".")
        log.warning("no local copy of %s in %s: %s; reading the store itself", store.folder, cache, reason)
        return store


def _found(store: TokenStore, tokenizer: Path, copy: Path) -> TokenStore | None:
    """The existing copy, if it is one of the present store; any other is deleted."""
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
    paths = [store.folder / name for name in (*FILES, META_NAME)]
    size, free = sum(path.stat().st_size for path in paths), shutil.disk_usage(copy.parent).free
    if free < size + SPARE_BYTES:
        raise BadInput(f"{free / 1e9:.1f} GB free, but {(size + SPARE_BYTES) / 1e9:.1f} needed")
    log.info("copying %.2f GB of tokens to %s", size / 1e9, copy)
    try:
        with atomic_dir(copy) as folder:
            for path in paths:
                with path.open("rb") as reader, (folder / path.name).open("wb") as writer:
                    while block := reader.read(BLOCK_BYTES):
                        writer.write(block)
                        if time.monotonic() > ends:
                            raise TimeoutError(f"copying took more than {WITHIN_SECONDS / 60:.0f} minutes")
        return _checked(tokenizer, copy)
    except BaseException:
        shutil.rmtree(copy, ignore_errors=True)
        raise


def _checked(tokenizer: Path, copy: Path) -> TokenStore:
    found = open_store(copy, tokenizer)
    check_store(found, copy.with_name(f"{copy.name}.checked"))
    return found
