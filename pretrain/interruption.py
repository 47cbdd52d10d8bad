"""Stopping on a signal: the step is finished, a checkpoint is saved, and the process exits with ``REQUEUE_CODE``.

Slurm sends SIGTERM or SIGUSR1 before the time limit, cloud machines before preemption, and Ctrl-C is SIGINT; a second
Ctrl-C quits at once, without a checkpoint. The end of torchrun or deepspeed stops a run too. The exit code (EX_TEMPFAIL
of sysexits.h) means that the same command resumes the run.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from types import FrameType

REQUEUE_CODE = 75
RESUME_ADVICE = "run the same command again to resume"
SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)
# torchrun forwards the Ctrl-C that its processes already received from the terminal; that is not a second request
ECHO_SECONDS = 1.0
LAUNCHERS = ("LOCAL_WORLD_SIZE", "LOCAL_SIZE")  # set by torchrun and deepspeed, the parents of their processes


class Interrupted(Exception):
    """Training was stopped and has saved a checkpoint; the message says how to resume."""


class ProcessLost(Interrupted):
    """Another process of the training ended, or cannot be reached."""


class StopRequest:
    """Catches the signals while the block runs; only in the main thread."""

    def __init__(self) -> None:
        self._is_signalled, self._made_at = False, 0.0
        self._launcher = os.getppid() if any(name in os.environ for name in LAUNCHERS) else None
        self._before: dict[signal.Signals, signal._HANDLER] = {}

    def __enter__(self) -> StopRequest:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._note) for number in SIGNALS}
        return self

    def __exit__(self, *raised: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @property
    def is_made(self) -> bool:
        """Whether this process should stop."""
        return self._is_signalled or (self._launcher is not None and os.getppid() != self._launcher)

    def _note(self, number: int, frame: FrameType | None) -> None:
        is_second = self._is_signalled and time.monotonic() - self._made_at > ECHO_SECONDS
        if number == signal.SIGINT and is_second:
            quit_now = self._before[signal.SIGINT]
            (quit_now if callable(quit_now) else signal.default_int_handler)(number, frame)
        if not self._is_signalled:
            self._is_signalled, self._made_at = True, time.monotonic()
            if number == signal.SIGINT and os.environ.get("RANK", "0") == "0":
                # not with logging, which the signal may have interrupted
                os.write(2, b"\nmalmoi: saving a checkpoint after this step; Ctrl-C again quits at once\n")
