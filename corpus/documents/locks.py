"""One process at a time: a lock on a file, which the system drops with the process that holds it, however that ends.

On a shared file system it holds between machines, too. A file system without locks goes without. ``Process`` says who
is at work, in files that other machines read: the machine itself can tell whether such a process still lives.
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

NO_LOCKS_HERE = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)  # of a file system
ENDED = "ZX"  # letters of processes that are there in name alone


class Process(NamedTuple):
    """A process by its host and number; ``began`` tells it from a later one of that number, 0 where that is unknown."""

    host: str
    pid: int
    began: int

    @property
    def lives(self) -> bool | None:
        """Whether it runs; None where only its own host can tell."""
        if self.host != socket.gethostname():
            return None
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except OSError:  # somebody else's
            pass
        state, began = _state_and_start(self.pid)
        return state not in ENDED and (0 in (self.began, began) or self.began == began)

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def current_process() -> Process:
    """The one that asks."""
    return Process(socket.gethostname(), os.getpid(), _state_and_start(os.getpid())[1])


def parse_process(value: Any) -> Process | None:
    """One that was written as JSON; None for anything else."""
    try:
        host, pid, began = value
    except (TypeError, ValueError):
        return None
    is_one = isinstance(host, str) and type(pid) is int and type(began) is int and 0 < pid < 1 << 31
    return Process(host, pid, began) if is_one else None


def write_lock_holder(path: Path) -> None:
    """Leave in a lock's file who holds it; a file that cannot be written stays as it is."""
    with suppress(OSError), path.open("r+", encoding="utf-8") as file:
        file.write(json.dumps(current_process()) + "\n")
        file.truncate()


def read_lock_holder(path: Path) -> Process | None:
    """Who signed it last; None where nobody did, or it cannot be read."""
    try:
        return parse_process(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, RecursionError):
        return None


def _state_and_start(pid: int) -> tuple[str, int]:
    """A process's letter in Linux, and the clock ticks from the machine's start to its own; "" and 0 elsewhere."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        return fields[0], int(fields[19])
    except (OSError, ValueError, IndexError):
        return "", 0


@contextmanager
def hold_lock(path: Path, *, waits: bool = False) -> Iterator[bool]:
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
