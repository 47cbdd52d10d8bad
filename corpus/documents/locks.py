"""One process at a time: a lock on a file, which the system drops with the process that holds it, however that ends.

On a shared file system it holds between machines, too. A file system without locks goes without.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

NO_LOCKS_HERE = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)  # of a file system


@contextmanager
def locked(path: Path, *, waits: bool = False) -> Iterator[bool]:
    """Hold the lock on ``path``, a file that is made for it; whether it is ours, which with ``waits`` it always is."""
    lock = FileLock(path, timeout=-1 if waits else 0, fallback_to_soft=False)  # a soft lock outlives a killed process
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
    finally:
        lock.release()
