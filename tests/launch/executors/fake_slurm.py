"""A Slurm of one machine for tests: ``sbatch``, ``squeue`` and ``srun`` as far as we use them.

Array tasks run as processes, with the environment and the log names that Slurm gives them. As in Slurm, an option
without its value is refused, a job is in the queue from the return of ``sbatch`` until its last task has ended, and
``sbatch`` returns at once. The state lies in the folder ``FAKE_SLURM``: ``jobs/<id>`` while queued, ``scripts/<id>``
for ever, ``down`` with the number of questions that the controller leaves unanswered, ``refuse`` to refuse all jobs.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

STATE = Path(os.environ.get("FAKE_SLURM", "no-such-queue"))
COMMANDS = ("sbatch", "squeue", "srun")
FLAGS = ("requeue",)


def install(folder: Path) -> None:
    """Write the commands into ``folder``, to be put on PATH."""
    folder.mkdir()
    for name in COMMANDS:
        command = folder / name
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{Path(__file__).resolve()}" {name} "$@"\n', "utf-8")
        command.chmod(0o755)


def sbatch(arguments: list[str]) -> int:
    [script] = arguments
    text = Path(script).read_text("utf-8")
    found = dict(re.findall(r"^#SBATCH --([a-z-]+)(?:=(.*))?$", text, re.MULTILINE))
    bare = [name for name, value in found.items() if not value and name not in FLAGS]
    if bare or (STATE / "refuse").exists():
        print(f"sbatch: error: option requires an argument: {bare}", file=sys.stderr)
        return 1
    number = str(1000 + len(list((STATE / "scripts").iterdir())))
    (STATE / "scripts" / number).write_text(text, "utf-8")
    job = {"name": found["job-name"], "array": found["array"], "output": found["output"]}
    (STATE / "jobs" / number).write_text(json.dumps(job), "utf-8")
    subprocess.Popen([sys.executable, __file__, "run", number], start_new_session=True)
    print(f"Submitted batch job {number}")
    return 0


def run(arguments: list[str]) -> int:
    """The job itself: its array tasks, at most as many together as the array allows."""
    [number] = arguments
    (STATE / "runners").mkdir(exist_ok=True)
    (STATE / "runners" / str(os.getpid())).touch()
    job = json.loads((STATE / "jobs" / number).read_text("utf-8"))
    span, _, limit = job["array"].partition("%")
    last = int(span.partition("-")[2])
    running: list[subprocess.Popen[bytes]] = []
    for index in range(last + 1):
        if len(running) >= int(limit or 1_000):
            running.pop(0).wait()
        output = job["output"].replace("%A", number).replace("%a", str(index))
        environment = os.environ | {"SLURM_JOB_ID": number, "SLURM_ARRAY_TASK_ID": str(index)}
        with Path(output).open("wb") as log:
            command = ["bash", str(STATE / "scripts" / number)]
            running.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
    for task in running:
        task.wait()
    (STATE / "jobs" / number).unlink()
    return 0


def squeue(arguments: list[str]) -> int:
    down = STATE / "down"
    if down.exists() and (left := int(down.read_text())):
        down.write_text(str(left - 1))
        print("slurm_load_jobs error: Unable to contact slurm controller", file=sys.stderr)
        return 1
    [name] = [argument.removeprefix("--name=") for argument in arguments if argument.startswith("--name=")]
    for job in (STATE / "jobs").iterdir():
        if json.loads(job.read_text("utf-8"))["name"] == name:
            print("RUNNING (None)")
    return 0


def srun(arguments: list[str]) -> int:
    return subprocess.run(arguments).returncode


if __name__ == "__main__":
    sys.exit(globals()[sys.argv[1]](sys.argv[2:]))
