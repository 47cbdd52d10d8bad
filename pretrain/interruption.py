"""SIGTERM and SIGUSR1 ask for an end: the step is finished, a checkpoint saved, and the process leaves with a code.

Slurm sends them before the time of a job is over, and cloud machines before they are taken away. The exit code
``REQUEUE_CODE`` (EX_TEMPFAIL of sysexits.h) tells the batch script that the same command goes on where this one ended.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType

REQUEUE_CODE = 75
SIGNALS = (signal.SIGTERM, signal.SIGUSR1)


class Interrupted(Exception):
    """Training was asked to end and has saved a checkpoint; the message says how to go on."""


class StopRequest:
    """Notes the signals while the block runs; outside of the main thread nothing is noted."""

    def __init__(self) -> None:
        self.is_made = False
        self._before: dict[signal.Signals, signal._HANDLER] = {}

    def __enter__(self) -> StopRequest:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._note) for number in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.is_made = True
