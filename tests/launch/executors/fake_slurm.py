"""A Slurm of one machine for tests: ``sbatch``, ``squeue`` and ``srun`` as far as we use them.

Array tasks run as processes, with the environment and the log names that Slurm gives them. As in Slurm, an option
without its value is refused, a task is in the queue from the return of ``sbatch`` until it has ended, its final state
is known afterwards, ``sbatch`` returns at once, and a job with ``--export=NONE`` hides the environment of its script
from ``srun``, except with ``--export=ALL``. The state lies in the folder ``FAKE_SLURM``: ``jobs/<id>`` with the state
of each task, ``scripts/<id>``, ``down`` with the number of questions that the controller leaves unanswered, ``refuse``
to refuse all jobs.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

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
    last = int(found["array"].partition("%")[0].partition("-")[2])
    job = {"name": found["job-name"], "array": found["array"], "output": found["output"]}
    write_job(number, job | {"states": ["PENDING"] * (last + 1), "export": found.get("export", "ALL")})
    subprocess.Popen([sys.executable, __file__, "run", number], start_new_session=True)
    print(f"Submitted batch job {number}")
    return 0


def write_job(number: str, job: dict[str, Any]) -> None:
    new = STATE / f"{number}.new"
    new.write_text(json.dumps(job), "utf-8")
    new.replace(STATE / "jobs" / number)


def run(arguments: list[str]) -> int:
    """The job itself: its array tasks, at most as many together as the array allows."""
    [number] = arguments
    (STATE / "runners").mkdir(exist_ok=True)
    (STATE / "runners" / str(os.getpid())).touch()
    job = json.loads((STATE / "jobs" / number).read_text("utf-8"))
    waiting, limit = list(range(len(job["states"]))), int(job["array"].partition("%")[2] or 1_000)
    running: dict[int, subprocess.Popen[bytes]] = {}
    while waiting or running:
        while waiting and len(running) < limit:
            index = waiting.pop(0)
            output = job["output"].replace("%A", number).replace("%a", str(index))
            variables = {"SLURM_JOB_ID": number, "SLURM_ARRAY_TASK_ID": str(index), "SLURM_EXPORT_ENV": job["export"]}
            with Path(output).open("wb") as log:
                command = ["bash", str(STATE / "scripts" / number)]
                running[index] = subprocess.Popen(command, env=os.environ | variables, stdout=log, stderr=log)
            job["states"][index] = "RUNNING"
            write_job(number, job)
        for index in [index for index, task in running.items() if task.poll() is not None]:
            job["states"][index] = "FAILED" if running.pop(index).returncode else "COMPLETED"
            write_job(number, job)
        time.sleep(0.02)
    return 0


def squeue(arguments: list[str]) -> int:
    down = STATE / "down"
    if down.exists() and (left := int(down.read_text())):
        down.write_text(str(left - 1))
        print("slurm_load_jobs error: Unable to contact slurm controller", file=sys.stderr)
        return 1
    assert {"--array", "--states=all", "--format=%F %K %T %r"} <= set(arguments)
    [name] = [argument.removeprefix("--name=") for argument in arguments if argument.startswith("--name=")]
    for path in (STATE / "jobs").iterdir():
        job = json.loads(path.read_text("utf-8"))
        for index, state in enumerate(job["states"] if job["name"] == name else []):
            print(path.name, index, state, "None")
    return 0


def srun(arguments: list[str]) -> int:
    """As in Slurm, a program that a signal ended gives 128 and its number."""
    exported = os.environ.get("SLURM_EXPORT_ENV", "ALL")
    if arguments[0].startswith("--export="):
        exported = arguments.pop(0).removeprefix("--export=")
    if exported == "NONE":
        print(f"slurmstepd: error: execve(): {arguments[0]}: No such file or directory", file=sys.stderr)
        return 2
    code = subprocess.run(arguments).returncode
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    sys.exit(globals()[sys.argv[1]](sys.argv[2:]))
