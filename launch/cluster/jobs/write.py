"""Files of a launch onto the disk, or onto the screen, and the command that hands them in."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence

from corpus.documents.atomic_files import atomic_write
from launch.cluster.jobs.plan import Launch
from launch.console import PlainConsole
from launch.errors import LaunchError


def deliver(launch: Launch, files: Mapping[str, str], start: Sequence[str], *, dry_run: bool, submit: bool) -> None:
    """Write ``files`` by name into the launch's folder and say, or do (``submit``), what starts them.

    Args:
        start: the command, run in that folder.
        dry_run: print the files and write nothing.

    Raises:
        LaunchError: the command is not there, or has failed.
    """
    console = PlainConsole(soft_wrap=True)
    if dry_run:
        for name, text in files.items():
            console.print(f"──── {launch.folder / name}\n{text}")
        return
    (launch.folder / "logs").mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        atomic_write(launch.folder / name, text)
        if name.endswith(".sh"):
            (launch.folder / name).chmod(0o755)  # deepspeed starts node.sh as a program
    words = shlex.join([start[0], *(str(launch.folder / word) if word in files else word for word in start[1:])])
    console.print(f"{launch.folder}: {', '.join(files)}")
    if not submit:
        console.print(f"to start:  {words}")
        return
    if shutil.which(start[0]) is None:
        raise LaunchError(f"{start[0]} is not on this machine; where it is, run {words}")
    if code := subprocess.run(shlex.split(words), check=False).returncode:
        raise LaunchError(f"{words} ended with {code}; its message is above")
