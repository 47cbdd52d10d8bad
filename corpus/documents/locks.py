"""File locks: one process at a time. The system releases a lock when its process ends, even when it is killed.

Locks also work between machines on a shared file system. On a file system without locks, nothing is locked. ``Process``
identifies a process in files that other machines read; only its own host can tell whether it is alive.
"""

from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock, Timeout

NO_LOCKS_HERE = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)  # the file system has no locks
ENDED = "ZX"  # Linux state letters of processes that have ended


class Process(NamedTuple):
    """A process by host, id and start time (0 if unknown), because ids are reused."""

    host: str
    pid: int
    began: int

    @property
    def lives(self) -> bool | None:
        """Whether it is running; None if only its own host can tell."""
        if self.host != socket.gethostname():
            return None
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except OSError:  # it belongs to another user
            pass
        state, began = _state_and_start(self.pid)
        return state not in ENDED and (0 in (self.began, began) or self.began == began)

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def current_process() -> Process:
    return Process(socket.gethostname(), os.getpid(), _state_and_start(os.getpid())[1])


def parse_process(value: Any) -> Process | None:
    """A process from its JSON form; None for any other value."""
    try:
        host, pid, began = value
    except (TypeError, ValueError):
        return None
    is_one = isinstance(host, str) and type(pid) is int and type(began) is int and 0 < pid < 1 << 31
    return Process(host, pid, began) if is_one else None


def write_lock_holder(path: Path) -> None:
    """Write this process into a lock file, if the file is writable."""
    with suppress(OSError), path.open("r+", encoding="utf-8") as file:
        file.write(json.dumps(current_process()) + "\n")
        file.truncate()


def read_lock_holder(path: Path) -> Process | None:
    """The process in a lock file; None if there is none."""
    try:
        return parse_process(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, RecursionError):
        return None


def _state_and_start(pid: int) -> tuple[str, int]:
    """State letter and start time of a process on Linux (clock ticks after boot); "" and 0 elsewhere."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        return fields[0], int(fields[19])
    except (OSError, ValueError, IndexError):
        return "", 0


@contextmanager
def hold_lock(path: Path, *, waits: bool = False) -> Iterator[bool]:
    """Lock the file ``path``, which is created. Yields whether this process holds the lock; ``waits``: wait for it."""
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
