"""Two processes never train one job: who trains it holds a lock on a file in its folder.

The system drops the lock with the process, so the job of a killed one can be taken again at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from corpus.documents.locks import hold_lock, write_lock_holder

CLAIM_NAME = "claim.lock"


@contextmanager
def claimed(folder: Path) -> Iterator[bool]:
    """Whether the job of this folder is ours for now; False where another process is at it."""
    folder.mkdir(parents=True, exist_ok=True)
    with hold_lock(folder / CLAIM_NAME) as is_ours:
        if is_ours:
            write_lock_holder(folder / CLAIM_NAME)  # for ``malmoi status``
        yield is_ours
        if is_ours:  # finished, and whoever opened the file before it went will find that
            with suppress(OSError):
                (folder / CLAIM_NAME).unlink()
