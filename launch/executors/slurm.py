"""Slurm: hand in one job array, then wait until it has left the queue.

The job's name holds the digest of the plan, so a command that was stopped and started again finds its own job and
waits for it instead of handing in a second one. Asking ``squeue`` every few seconds is the price of that.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from launch.config import LaunchConfig
from launch.errors import LaunchError

log = logging.getLogger(__name__)

POLL_SECONDS = 10.0
SETTLE_SECONDS = 90.0  # network file systems show new names after up to a minute
SILENCE_SECONDS = 1_800.0  # how long the controller may be unreachable
UNSAFE = re.compile(r"[^\w./+,:@=-]")  # what a batch script reads as more than a path


def check_slurm() -> None:
    """Raises LaunchError where no job can be handed in."""
    for command in ("sbatch", "squeue"):
        if shutil.which(command) is None:
            raise LaunchError(f"launch.engine=slurm needs the command {command}; run malmoi on a login node")
    if "SLURM_ARRAY_TASK_ID" in os.environ:
        raise LaunchError("launch.engine=slurm cannot start inside a task of a job array; run malmoi on a login node")


def job_name(home: Path) -> str:
    """Name of the job for the plan in ``home``."""
    return f"malmoi-{home.name.removeprefix('engine-')}"


def submit(home: Path, tasks: int, config: LaunchConfig) -> None:
    """Hand in the job array; ``LaunchError`` for a path that a batch script cannot hold, or where sbatch refuses."""
    from launch.executors.steps import FinishUnits, SlurmArray

    binaries = Path(sys.executable).parent
    for path in (home, binaries):
        if found := UNSAFE.search(str(path)):
            raise LaunchError(f"{path}: Slurm scripts cannot hold {found[0]!r} in a path; choose another folder")
    setup = [config.slurm.setup] if config.slurm.setup else []
    executor = SlurmArray(
        [FinishUnits(home)],
        tasks=tasks,
        time=time_limit(config.slurm.hours),
        partition=config.slurm.partition,
        cpus_per_task=config.cpus_per_task,
        gpus_per_task=config.gpus_per_task,
        mem_per_cpu_gb=config.mem_gb_per_cpu,
        workers=config.at_once or -1,
        job_name=job_name(home),
        qos=config.slurm.qos,
        env_command=" && ".join([*setup, f"export PATH={shlex.quote(str(binaries))}:$PATH"]),
        sbatch_args=dict(config.slurm.options),
        logging_dir=str(home),
        skip_completed=False,  # a marker says nothing about settings; the units themselves do
    )
    try:
        executor.run()
    except subprocess.CalledProcessError as error:
        script = home / "launch_script.slurm"
        raise LaunchError(f"sbatch refused {script} with status {error.returncode}; its message is above") from None


def time_limit(hours: float) -> str:
    """Slurm's spelling of a duration, whole minutes rounded up.

    >>> time_limit(1.5), time_limit(48)
    ('01:30:00', '48:00:00')
    """
    minutes = -int(-hours * 60 // 1)
    return f"{minutes // 60:02}:{minutes % 60:02}:00"


def is_queued(name: str) -> bool:
    """Whether a job of that name waits or runs."""
    return bool(_queue(name))


def wait(name: str, is_done: Callable[[], bool]) -> None:
    """Return when the job has left the queue and its files can be seen, or everything is there for a while."""
    shown: Counter[str] = Counter()
    done_since: float | None = None
    while states := _queue(name):
        if states != shown:
            log.info("%s: %s", name, ", ".join(f"{n} {state}" for state, n in sorted(states.items())))
            shown = states
        done_since = (done_since or time.monotonic()) if is_done() else None
        if done_since is not None and time.monotonic() - done_since > SETTLE_SECONDS:
            log.warning("%s: all units are there; `scancel --name=%s` ends what is left of the job", name, name)
            return
        time.sleep(POLL_SECONDS)
    deadline = time.monotonic() + SETTLE_SECONDS
    while not is_done() and time.monotonic() < deadline:
        time.sleep(min(POLL_SECONDS, SETTLE_SECONDS))


def _queue(name: str) -> Counter[str]:
    """States and reasons of the tasks in the queue, such as "PENDING (Priority)"; asks again until Slurm answers."""
    command = ["squeue", "--noheader", f"--name={name}", "--format=%T (%r)"]
    silent_since = time.monotonic()
    while (answer := subprocess.run(command, capture_output=True, text=True)).returncode:
        log.warning("squeue: %s", answer.stderr.strip() or f"status {answer.returncode}")
        if time.monotonic() - silent_since > SILENCE_SECONDS:
            raise LaunchError(f"squeue does not answer; job {name} goes on, run the same command again to wait for it")
        time.sleep(POLL_SECONDS)
    return Counter(line.strip() for line in answer.stdout.splitlines() if line.strip())
