"""One task of a cluster job: a process of its own that finishes every n-th missing unit.

Slurm starts ``python -m launch.executors.task HOME RANK TASKS``, Ray calls ``start_task``. Both start a second process
for the work: a task that is killed for its memory is noticed, text of a failing document reaches no log of the cluster,
and nothing is forked from Ray's threads. Cost: one more start of Python.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from threading import Thread

from corpus.documents.units import COUNTS_NAME, run_unit, unit_folder
from launch.errors import USER_ERRORS, LaunchError, error_message
from launch.executors.plan import LOGS_NAME, Failure, Plan, read_plan, write_failure

log = logging.getLogger(__name__)

WORK = "work"  # last argument of the process that does the work
FAILED = 3  # exit status: a failure file says why
FRAMES_SHOWN = 6


def start_task(home: Path, rank: int, tasks: int) -> None:
    """Run the task in its own process and wait for it; ``LaunchError`` if units are left; a file holds the reason."""
    plan = read_plan(home)
    if not plan.directory.is_dir():
        raise LaunchError(f"{plan.directory}: not on this node; start malmoi in a folder that every node sees")
    command = [sys.executable, "-m", "launch.executors.task", str(home), str(rank), str(tasks), WORK]
    log_file = home / LOGS_NAME / f"task-{rank:05}.log"
    log_file.parent.mkdir(exist_ok=True)
    with (
        log_file.open("ab") as output,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=output, cwd=plan.directory) as process,
    ):
        status = process.wait()  # its standard input stays open; the process ends when this one does
    unfinished = next((number for number in plan.missing[rank::tasks] if not _is_finished(plan, number)), None)
    if unfinished is None:
        return
    if status != FAILED:
        write_failure(home, Failure(unfinished, False, f"its process ended with {_describe_status(status)}"))
    raise LaunchError(f"task {rank} of {tasks} failed; the reason is in {home}")


def run_task(home: Path, rank: int, tasks: int) -> int:
    """Finish the task's units in order; returns the exit status: 0, or ``FAILED`` once a failure was written."""
    plan = read_plan(home)
    for number in plan.missing[rank::tasks]:
        if _is_finished(plan, number):  # by an earlier attempt
            continue
        start = time.monotonic()
        failure = finish_or_explain(plan, number)
        if failure is not None:
            write_failure(home, failure)
            log.error("unit %d failed", number)
            return FAILED
        log.info("unit %d finished in %.1f s", number, time.monotonic() - start)
    return 0


def finish_or_explain(plan: Plan, number: int) -> Failure | None:
    """Finish one unit. The failure of a bug names code lines only: messages of exceptions may quote the text."""
    try:
        run_unit(plan.work, plan.units[number], unit_folder(plan.folder, number))
    except USER_ERRORS as error:
        if isinstance(error, OSError) and _is_finished(plan, number):
            return None  # an attempt that the cluster considered dead was faster; its bytes are the same
        return Failure(number, True, error_message(error))
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)[-FRAMES_SHOWN:]
        places = [f"{Path(frame.filename).name}:{frame.lineno} ({frame.name})" for frame in frames]
        return Failure(number, False, f"{type(error).__name__} at {' > '.join(places)}")
    return None


def _is_finished(plan: Plan, number: int) -> bool:
    return (unit_folder(plan.folder, number) / COUNTS_NAME).is_file()


def _describe_status(status: int) -> str:
    if status >= 0:
        return f"status {status}"
    hint = " (usually too little memory: raise launch.mem_gb_per_cpu)" if status == -signal.SIGKILL else ""
    return signal.Signals(-status).name + hint


def _end_with_parent() -> None:
    """End this process when its standard input closes, that is, when the process that started it has ended."""
    standard_input = 0  # the descriptor: a thread in `sys.stdin.read` holds a lock that Python needs at exit
    Thread(target=lambda: (os.read(standard_input, 1), os._exit(1)), daemon=True).start()


def main(arguments: Sequence[str]) -> int:
    """Entry of both processes; ``arguments`` are HOME, RANK, TASKS and, for the one that does the work, ``WORK``."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    home, rank, tasks, *work = arguments
    if work:
        _end_with_parent()
        return run_task(Path(home), int(rank), int(tasks))
    try:
        start_task(Path(home), int(rank), int(tasks))
    except LaunchError as error:
        log.error("%s", error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
