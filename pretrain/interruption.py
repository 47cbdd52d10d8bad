"""A signal asks for an end: the step is finished, a checkpoint saved, and the process leaves with a code.

Slurm sends SIGTERM or SIGUSR1 before the time of a job is over, cloud machines before they are taken away, a person
presses Ctrl-C (SIGINT). The exit code ``REQUEUE_CODE`` (EX_TEMPFAIL of sysexits.h) tells a batch script that the same
command goes on where this one ended. A second Ctrl-C quits at once, without a checkpoint.

The end of torchrun or deepspeed asks for it, too: nobody would be left to start or to end these processes.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from types import FrameType

REQUEUE_CODE = 75
GOES_ON = "the same command goes on from there"
SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)
# torchrun passes on the Ctrl-C that its processes have from the terminal already; an echo is not a second request
ECHO_SECONDS = 1.0
LAUNCHERS = ("LOCAL_WORLD_SIZE", "LOCAL_SIZE")  # set by torchrun and deepspeed, the parents of their processes


class Interrupted(Exception):
    """Training was asked to end and has saved a checkpoint; the message says how to go on."""


class ProcessLost(Interrupted):
    """Another process of the training has ended, or cannot be reached any more."""


class StopRequest:
    """Notes the signals while the block runs; outside of the main thread nothing is noted."""

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
        """Whether this process is to end."""
        return self._is_signalled or (self._launcher is not None and os.getppid() != self._launcher)

    def _note(self, number: int, frame: FrameType | None) -> None:
        is_second = self._is_signalled and time.monotonic() - self._made_at > ECHO_SECONDS
        if number == signal.SIGINT and is_second:
            quit_now = self._before[signal.SIGINT]
            (quit_now if callable(quit_now) else signal.default_int_handler)(number, frame)
        if not self._is_signalled:
            self._is_signalled, self._made_at = True, time.monotonic()
            if number == signal.SIGINT and os.environ.get("RANK", "0") == "0":
                # not through logging, which the signal may have interrupted
                os.write(2, b"\nmalmoi: saving a checkpoint after this step; Ctrl-C again quits at once\n")
