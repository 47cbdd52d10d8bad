"""Jobs over processes: each slot has one process, which takes the next job when it is done.

Results do not depend on the number of slots or the order of jobs. A process that dies is replaced and its job repeated;
after the second death the job fails and the others continue. A single CPU slot works in this process, which saves one
import of torch.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple

import torch

from finetune.queue.jobs import MORE_MEMORY, Job, Outcome, Work, attempt

log = logging.getLogger(__name__)

VISIBLE = {"cuda": "CUDA_VISIBLE_DEVICES", "xpu": "ZE_AFFINITY_MASK"}  # the variable that shows devices to a process
START = "spawn"  # a forked process cannot use a GPU that its parent has looked at
POLL_SECONDS = 2.0  # until a job that another command is at is looked at again
MAX_DEATHS = 2
KILLED_TWICE = f"the process that trained it was killed twice, most likely because memory ran out; {MORE_MEMORY}"


class Slot(NamedTuple):
    """Where one process works: environment variables, such as the visible GPU, and what it does first."""

    environment: Mapping[str, str]
    prepare: Callable[[], None] | None = None


def slots_of(device: torch.device, workers: int, *, apart: bool = False) -> list[Slot]:
    """One slot for each GPU, or ``workers`` on a CPU; none if this process does the work, which ``apart`` forbids."""
    if device.type == "cpu":
        return [Slot({}, _use_one_thread)] * workers if workers > 1 or apart else []
    variable = VISIBLE.get(device.type)
    return gpu_slots(variable, torch.accelerator.device_count()) if variable and workers else []


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread while this process trains."""
    threads = torch.get_num_threads()
    _use_one_thread()
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _use_one_thread() -> None:
    torch.set_num_threads(1)  # results on a CPU do not depend on the number of its cores


def gpu_slots(variable: str, count: int) -> list[Slot]:
    """One process for each of ``count`` GPUs, which sees no other; ``variable`` may already list the GPUs to use."""
    visible = [name for name in os.environ.get(variable, "").split(",") if name]
    return [Slot({variable: name}) for name in (visible or map(str, range(count)))][:count]


def finish(
    jobs: Sequence[Job],
    work: Work,
    out: Path,
    began: Callable[[Job], None],
    slots: Sequence[Slot],
    *,
    waits: bool = True,
) -> Iterator[Outcome]:
    """Outcomes of jobs below ``out`` as they come; ``began`` is called at each start; no slots: in this process.

    An outcome with neither result nor failure means that the job waits again, because another command has it; with
    slots only if this command ``waits`` for others when it has nothing else to do.
    """
    return _side_by_side(jobs, work, out, began, slots, waits) if slots else _here(jobs, work, out, began)


def _here(jobs: Sequence[Job], work: Work, out: Path, began: Callable[[Job], None]) -> Iterator[Outcome]:
    """Run one job after the other in this process."""
    waiting = deque(jobs)
    taken = 0  # looked at in a row and found with another command
    while waiting:
        if taken >= len(waiting):
            time.sleep(POLL_SECONDS)
            taken = 0
        job = waiting.popleft()
        began(job)
        outcome = attempt(work, job, out)
        taken = taken + 1 if _is_taken(outcome) else 0
        if _is_taken(outcome):
            waiting.append(job)
        yield outcome


def _side_by_side(
    jobs: Sequence[Job], work: Work, out: Path, began: Callable[[Job], None], slots: Sequence[Slot], waits: bool
) -> Iterator[Outcome]:
    """Run jobs in processes, outcomes in the order in which they come; all processes are ended at the end."""
    do, waiting, deaths = partial(attempt, work, out=out), deque(jobs), Counter[Job]()
    later: list[tuple[float, Job]] = []  # when to look again at what another command is at
    workers: list[_Worker] = []
    free = list(slots)
    try:
        while waiting or (later and waits) or any(worker.job for worker in workers):
            waiting.extend(job for due, job in later if due <= time.monotonic())
            later = [entry for entry in later if entry[0] > time.monotonic()]
            while waiting and free and sum(worker.job is None for worker in workers) < len(waiting):
                workers.append(_Worker(free.pop(0), do))
            for worker in workers:
                if waiting and worker.job is None:
                    began(waiting[0])
                    worker.give(waiting.popleft())
            ready = set(wait([worker.connection for worker in workers], POLL_SECONDS if later else None))
            for outcome in filter(None, [worker.outcome() for worker in workers if worker.connection in ready]):
                if _is_taken(outcome):
                    later.append((time.monotonic() + POLL_SECONDS, outcome.job))
                yield outcome
            for worker in [worker for worker in workers if worker.is_dead]:
                workers.remove(worker)
                free.append(worker.slot)
                if worker.job is not None:
                    deaths[worker.job] += 1
                    yield _after_death(worker.job, deaths, waiting)
    finally:
        for worker in workers:
            worker.end()


def _is_taken(outcome: Outcome) -> bool:
    return outcome.result is None and outcome.failure is None


def _after_death(job: Job, deaths: Counter[Job], waiting: deque[Job]) -> Outcome:
    if deaths[job] >= MAX_DEATHS:
        return Outcome(job, failure=KILLED_TWICE)
    log.warning("%s: the process that trained it was killed; taking it again", job)
    waiting.appendleft(job)
    return Outcome(job)


class _Worker:
    """A process and its current job."""

    def __init__(self, slot: Slot, do: Callable[[Job], Outcome]) -> None:
        context: Any = multiprocessing.get_context(START)
        self.slot, self.is_dead = slot, False
        self.job: Job | None = None
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, do, slot.prepare), daemon=True)
        with _environment(slot.environment):  # before it imports torch
            self.process.start()
        theirs.close()

    def give(self, job: Job) -> None:
        self.job = job
        with suppress(OSError):  # it died in between, as ``outcome`` will report
            self.connection.send(job)

    def outcome(self) -> Outcome | None:
        """What it sent; None if it died instead."""
        try:
            outcome: Outcome = self.connection.recv()
        except (EOFError, OSError):
            self.is_dead = True
            self.end()
            return None
        self.job = None
        return outcome

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _serve(connection: Connection, do: Callable[[Job], Outcome], prepare: Callable[[], None] | None) -> None:
    """The loop of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    logging.getLogger("finetune.data").setLevel(logging.ERROR)  # the parent has logged what it found in the same files
    if (parent := multiprocessing.parent_process()) is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()
    if prepare is not None:
        prepare()
    while True:
        connection.send(do(connection.recv()))


def _end_with(sentinel: int) -> None:
    """End with the parent: a killed parent cannot stop its processes, which would keep training."""
    wait([sentinel])
    os._exit(1)
