"""Worker processes that end with their parent, and what is said when one of them is killed."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from threading import Thread

KILLED = (
    "a worker process was killed, most likely for want of memory; run the same command again with fewer workers "
    "(workers=1 is the least), it goes on where it stopped"
)


def start_processes(workers: int) -> ProcessPoolExecutor:
    """A pool of fresh processes, which share no state with this one."""
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_start_process)


def _start_process() -> None:
    """A killed parent cannot stop its processes: each watches for its end, or it would work beside the next run."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the processes are the parallelism
    parent = parent_process()
    if parent is not None:
        Thread(target=lambda: (wait([parent.sentinel]), os._exit(1)), daemon=True).start()
