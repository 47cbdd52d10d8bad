"""Progress of a queue: one line in the log and in ``jobs.log`` for each job that ends.

The time left is estimated from the mean of the finished jobs of a task, or of all tasks.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from statistics import fmean
from typing import Any

from corpus.documents.escaping import escape_message
from finetune.metrics import figure
from finetune.queue.jobs import Job, Outcome

log = logging.getLogger(__name__)

LOG_NAME = "jobs.log"


class Progress:
    """The state of a queue; ``began`` and ``ended`` update it.

    Args:
        finished: number of jobs that were finished before.
        slots: number of jobs that run at the same time.
        price: of one device per hour; None: no cost is shown.
    """

    def __init__(self, jobs: Sequence[Job], finished: int, slots: int, log_file: Path, price: float | None) -> None:
        self._left = dict.fromkeys(jobs)
        self._finished, self._done, self._failed = finished, 0, 0
        self._total, self._slots, self._price, self._log_file = len(jobs) + finished, max(slots, 1), price, log_file
        self._running: dict[Job, float] = {}
        self._seconds: dict[str, list[float]] = defaultdict(list)
        self._start = time.monotonic()

    def began(self, job: Job) -> None:
        self._running[job] = time.monotonic()

    def ended(self, outcome: Outcome) -> None:
        """Log one line for a result or a failure; a job to be repeated only stops running."""
        began = self._running.pop(outcome.job, self._start)
        if outcome.result is None and outcome.failure is None:
            return
        self._left.pop(outcome.job, None)
        if outcome.result is None:
            self._failed += 1
            line = f"{outcome.job}: failed: {outcome.failure}"
        else:
            self._done += 1
            self._seconds[outcome.job.task].append(time.monotonic() - began)
            line = describe(outcome.result)
        self._write(f"{line} ({self._summary()})", logging.WARNING if outcome.failure else logging.INFO)
        if outcome.trace:
            log.error("%s", outcome.trace)

    def seconds_left(self) -> float | None:
        """Seconds until the last job is done; None before the first result."""
        known = [value for values in self._seconds.values() for value in values]
        if not known:
            return None
        of_task, of_any = {task: fmean(values) for task, values in self._seconds.items()}, fmean(known)
        now = time.monotonic()
        left = [of_task.get(job.task, of_any) - (now - self._running.get(job, now)) for job in list(self._left)]
        return sum(max(seconds, 0.0) for seconds in left) / min(self._slots, max(len(left), 1))

    def _summary(self) -> str:
        said = f"{self._finished + self._done} of {self._total} done"
        said += f", {self._failed} failed" if self._failed else ""
        left = self.seconds_left()
        if self._left and left is not None:
            said += f", eta {timedelta(seconds=round(left))}"
        if self._price is not None:
            spent = time.monotonic() - self._start
            so_far, whole = (s / 3600 * self._slots * self._price for s in (spent, spent + (left or 0.0)))
            said += f", cost {so_far:,.2f}" + (f" of about {whole:,.2f}" if self._left and left is not None else "")
        return said

    def _write(self, line: str, level: int) -> None:
        log.log(level, "%s", line)
        self._log_file.parent.mkdir(parents=True, exist_ok=True)
        with self._log_file.open("a", encoding="utf-8") as file:
            file.write(f"{datetime.now():%Y-%m-%d %H:%M:%S} {escape_message(line)}\n")


def describe(result: Mapping[str, Any]) -> str:
    """One line: ``ynat, model, seed 42: macro_f1 61.20 (constant 6.13, counting 40.25), 500 examples, 8.1 s``."""
    if "log_line" in result:  # a trial has its own line
        return str(result["log_line"])
    name = result["headline"]
    value, constant, counting = (figure(result[kind].get(name)) for kind in ("scores", "constant", "counting"))
    who = ", ".join(part for part in (result["task"], result["model"], result["settings"]) if part)
    counts = result.get("parameters", {"trained": 0, "all": 0})
    is_partial = counts["trained"] < counts["all"]  # as with LoRA
    part = f", {counts['trained']:,} of {counts['all']:,} parameters, {result['peak_mib']:,} MiB" if is_partial else ""
    return (
        f"{who}, seed {result['seed']}: {name} {value} (constant {constant}, counting {counting}), "
        f"{result['n']:,} examples, {result['seconds']} s{part}"
    )


def failures(outcomes: Iterable[Outcome], total: int) -> str:
    """The error message of a stage with failed jobs."""
    lines = [f"  {outcome.job}: {outcome.failure}" for outcome in outcomes]
    return "\n".join([
        f"{len(lines)} of {total} jobs failed; what is finished is kept, and the same command tries them again:", *lines
    ])  # fmt: skip
