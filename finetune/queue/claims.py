"""Two processes never train one job: who trains it holds a lock on a file in its folder.

The system drops the lock with the process, however that ends, so the job of a killed one can be taken again at once, on
a shared file system of several machines, too. A file system without locks goes without.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

CLAIM_NAME = "claim.lock"
NO_LOCKS_HERE = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)  # of a file system


@contextmanager
def claimed(folder: Path) -> Iterator[bool]:
    """Whether the job of this folder is ours for now; False where another process is at it."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / CLAIM_NAME, timeout=0, fallback_to_soft=False)  # a soft lock outlives a killed process
    is_ours = True
    try:
        lock.acquire()
    except Timeout:
        is_ours = False
    except NotImplementedError:  # filelock of a platform without file locks
        pass
    except OSError as error:
        if error.errno not in NO_LOCKS_HERE:
            raise
    try:
        yield is_ours
        if is_ours:  # finished, and whoever opened the file before it went will find that
            with suppress(OSError):
                (folder / CLAIM_NAME).unlink()
    finally:
        lock.release()
