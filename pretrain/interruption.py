"""A signal asks for an end: the step is finished, a checkpoint saved, and the process leaves with a code.

Slurm sends SIGTERM or SIGUSR1 before the time of a job is over, cloud machines before they are taken away, a person
presses Ctrl-C (SIGINT). The exit code ``REQUEUE_CODE`` (EX_TEMPFAIL of sysexits.h) tells a batch script that the same
command goes on where this one ended. A second Ctrl-C quits at once, without a checkpoint.
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


class Interrupted(Exception):
    """Training was asked to end and has saved a checkpoint; the message says how to go on."""


class StopRequest:
    """Notes the signals while the block runs; outside of the main thread nothing is noted."""

    def __init__(self) -> None:
        self.is_made = False
        self._made_at = 0.0
        self._before: dict[signal.Signals, signal._HANDLER] = {}

    def __enter__(self) -> StopRequest:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._note) for number in SIGNALS}
        return self

    def __exit__(self, *raised: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        is_second = self.is_made and time.monotonic() - self._made_at > ECHO_SECONDS
        if number == signal.SIGINT and is_second:
            quit_now = self._before[signal.SIGINT]
            (quit_now if callable(quit_now) else signal.default_int_handler)(number, frame)
        if not self.is_made:
            self.is_made, self._made_at = True, time.monotonic()
            if number == signal.SIGINT and os.environ.get("RANK", "0") == "0":
                # not through logging, which the signal may have interrupted
                os.write(2, b"\nmalmoi: saving a checkpoint after this step; Ctrl-C again quits at once\n")
