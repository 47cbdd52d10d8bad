"""One process at a time works on a stage of a run: a second one would take its unfinished files for leftovers.

The lock is a byte of ``runs/<recipe>/.lock`` for each stage, held by the system and gone with the process, however that
ends. A file system that knows no locks goes without.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from launch.errors import LaunchError

LOCK_NAME = ".lock"


@contextmanager
def held(run: Path, stage: str, number: int) -> Iterator[None]:
    """Hold the lock of a stage.

    Args:
        run: folder of the run; created when missing.
        number: place of the stage among all.

    Raises:
        LaunchError: another process holds it.
    """
    run.mkdir(parents=True, exist_ok=True)
    file = os.open(run / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
        except (BlockingIOError, PermissionError):  # POSIX lets systems choose between the two
            raise LaunchError(
                f"{run / stage}: another malmoi process is at work in this folder; wait for it, or give this run "
                "another name with name=…"
            ) from None
        except OSError:
            pass
        yield
    finally:
        os.close(file)
