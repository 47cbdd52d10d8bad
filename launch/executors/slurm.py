"""Slurm: submit one job array, then wait until it has left the queue.

The job's name holds the digest of the plan, so a command that was stopped and started again finds its own job and
waits for it instead of submitting a second one. The batch script tries a killed task again; a task that Slurm itself
has ended is reported at the next look. Cost: one ``squeue`` call every few seconds.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from corpus.documents.atomic_files import atomic_write
from corpus.documents.templates import load_templates
from launch.config import LaunchConfig
from launch.errors import LaunchError
from launch.executors.task import KILLED, LOGS_NAME, MAX_ATTEMPTS, MEMORY_ADVICE, Plan, finished_units, write_plan

log = logging.getLogger(__name__)

POLL_SECONDS = 10.0
VISIBLE_SECONDS = 90.0  # network file systems show new names after up to a minute
UNREACHABLE_SECONDS = 1_800.0  # how long the controller may not answer
FAILED_SECONDS = 15.0  # how long reasons of failed tasks may take to become visible
ENDED = {  # states of ended tasks, with what to do; the others are those of tasks in the queue
    "COMPLETED": "",
    "FAILED": f"see its log; a killed task: {MEMORY_ADVICE}",
    "OUT_OF_MEMORY": "raise launch.mem_gb_per_cpu",
    "TIMEOUT": "raise launch.slurm.hours",
    **dict.fromkeys(("BOOT_FAIL", "CANCELLED", "DEADLINE", "NODE_FAIL", "PREEMPTED"), "run the same command again"),
}
UNSAFE = re.compile(r"[^\w./+,:@=-]")  # characters with a meaning in a batch script


def check_slurm() -> None:
    """Raise ``LaunchError`` if no job can be submitted from here."""
    for command in ("sbatch", "squeue"):
        if shutil.which(command) is None:
            raise LaunchError(f"launch.engine=slurm needs the command {command}; run malmoi on a login node")
    if "SLURM_ARRAY_TASK_ID" in os.environ:
        raise LaunchError("launch.engine=slurm cannot start inside a task of a job array; run malmoi on a login node")


def execute_on_slurm(config: LaunchConfig, plan: Plan, home: Path) -> dict[int, str]:
    """Submit a job array, or find the one of a command that was stopped, and wait for it.

    Returns why, for each task that did not complete.
    """
    name = job_name(home)
    if is_queued(name):
        log.info("job %s is already in the queue; waiting for it", name)
    else:
        write_plan(home, plan)
        submit(home, min(config.tasks, len(plan.missing)), config)
    try:
        return wait(name, lambda: finished_units(plan.folder).issuperset(plan.missing))
    except KeyboardInterrupt:
        log.warning("job %s keeps running; the same command waits for it, `scancel --name=%s` cancels it", name, name)
        raise


def job_name(home: Path) -> str:
    """Name of the job for the plan in ``home``."""
    return f"malmoi-{home.name.removeprefix('engine-')}"


def submit(home: Path, tasks: int, config: LaunchConfig) -> None:
    """Submit the job array; ``LaunchError`` if a path is not safe in a batch script, or sbatch rejects the job."""
    binaries = Path(sys.executable).parent
    for path in (home, binaries):
        if unsafe := UNSAFE.search(str(path)):
            raise LaunchError(f"{path}: Slurm scripts cannot hold {unsafe[0]!r} in a path; choose another folder")
    options: dict[str, object] = {
        "job-name": job_name(home),
        "array": f"0-{tasks - 1}" + (f"%{config.at_once}" if config.at_once else ""),
        "output": f"{home / LOGS_NAME}/%A_%a.out",
        "nodes": 1,
        "cpus-per-task": config.cpus_per_task,
        "mem-per-cpu": f"{config.mem_gb_per_cpu}G",
        "time": time_limit(config.slurm.hours),
        **({"gpus": config.gpus_per_task} if config.gpus_per_task and "gres" not in config.slurm.options else {}),
        **config.slurm.options,
    }
    text = load_templates("launch.executors").get_template("job.sbatch.j2").render(
        directives=directives(options), setup=config.slurm.setup, binaries=binaries, home=home, tasks=tasks,
        attempts=MAX_ATTEMPTS, killed=KILLED, advice=MEMORY_ADVICE,
    )  # fmt: skip
    script = home / "job.sbatch"
    atomic_write(script, text)
    (home / LOGS_NAME).mkdir(exist_ok=True)
    if code := subprocess.run(["sbatch", str(script)], check=False).returncode:
        raise LaunchError(f"sbatch rejected {script} with status {code}; its message is above")


def directives(options: Mapping[str, object]) -> list[str]:
    """Options of sbatch; true: without a value. One that a setting has emptied is left out, and the log names it."""
    if dropped := [name for name, value in options.items() if value == ""]:
        log.info("sbatch options left out, because they are empty: %s", ", ".join(dropped))
    return [f"--{name}" if value is True else f"--{name}={value}" for name, value in options.items() if value != ""]


def time_limit(hours: float) -> str:
    """A duration as Slurm reads it, rounded up to whole minutes.

    >>> time_limit(1.5), time_limit(48)
    ('01:30:00', '48:00:00')
    """
    minutes = -int(-hours * 60 // 1)
    return f"{minutes // 60:02}:{minutes % 60:02}:00"


def is_queued(name: str) -> bool:
    """Whether a job of that name is pending or running."""
    return any(state not in ENDED for state, _ in _tasks(name).values())


def wait(name: str, is_done: Callable[[], bool]) -> dict[int, str]:
    """Return when the job has left the queue and its files are visible, or all files have been visible for a while.

    The result has a reason for each task that did not complete; it is also logged as soon as Slurm reports it.
    """
    logged: Counter[str] = Counter()
    losses: dict[int, str] = {}
    done_since: float | None = None
    while states := _queue(name, losses):
        if states != logged:
            log.info("%s: %s", name, ", ".join(f"{n} {state}" for state, n in sorted(states.items())))
            logged = states
        done_since = (done_since or time.monotonic()) if is_done() else None
        if done_since is not None and time.monotonic() - done_since > VISIBLE_SECONDS:
            log.warning("%s: all units are finished; `scancel --name=%s` cancels the rest of the job", name, name)
            return losses
        time.sleep(POLL_SECONDS)
    patience = min(FAILED_SECONDS, VISIBLE_SECONDS) if losses else VISIBLE_SECONDS
    deadline = time.monotonic() + patience
    while not is_done() and time.monotonic() < deadline:
        time.sleep(min(POLL_SECONDS, patience))
    return losses


def _queue(name: str, losses: dict[int, str]) -> Counter[str]:
    """States and reasons of the tasks in the queue, such as "PENDING (Priority)"; adds tasks that failed to losses."""
    tasks = _tasks(name)
    for number, (state, _) in tasks.items():
        if ENDED.get(state) and number not in losses:
            losses[number] = f"Slurm ended it as {state} ({ENDED[state]})"
            log.warning("%s: task %d: %s", name, number, losses[number])
    return Counter(f"{state} ({reason})" for state, reason in tasks.values() if state not in ENDED)


def _tasks(name: str) -> dict[int, tuple[str, str]]:
    """State and reason of each task of the newest job of that name that Slurm still knows; asks until it answers."""
    command = ["squeue", "--noheader", "--array", "--states=all", f"--name={name}", "--format=%F %K %T %r"]
    no_answer_since = time.monotonic()
    while (answer := subprocess.run(command, capture_output=True, text=True)).returncode:
        log.warning("squeue: %s", answer.stderr.strip() or f"status {answer.returncode}")
        if time.monotonic() - no_answer_since > UNREACHABLE_SECONDS:
            raise LaunchError(f"squeue does not answer; job {name} keeps running; the same command waits for it again")
        time.sleep(POLL_SECONDS)
    lines = [line.split(maxsplit=3) for line in answer.stdout.splitlines() if line.strip()]
    newest = max((int(job) for job, *_ in lines), default=0)
    return {int(number): (state, reason) for job, number, state, reason in lines if int(job) == newest}
