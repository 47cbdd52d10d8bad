"""One process at a time works on a stage of a run: a second one would take its unfinished files for leftovers.

The system holds the lock and drops it with the process, however that ends; a file system without locks goes without.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from launch.errors import LaunchError

NO_LOCKS_HERE = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)


@contextmanager
def held(run: Path, stage: str) -> Iterator[None]:
    """Hold ``.<stage>.lock`` in the folder of the run, which is created when missing.

    Raises:
        LaunchError: another process holds it.
    """
    run.mkdir(parents=True, exist_ok=True)
    lock = FileLock(run / f".{stage}.lock", timeout=0, fallback_to_soft=False)  # a soft lock outlives a killed process
    try:
        lock.acquire()
    except Timeout:
        raise LaunchError(
            f"{run / stage}: another malmoi process is at work in this folder; wait for it, or give this run "
            "another name with name=…"
        ) from None
    except NotImplementedError:  # filelock of a platform without file locks
        pass
    except OSError as error:
        if error.errno not in NO_LOCKS_HERE:
            raise
    try:
        yield
    finally:
        lock.release()
