"""A training on hosts by the scripts that ``malmoi launch hosts`` writes, to be disturbed; ``run.sh`` starts it again.

The recipe is tiny and its steps are many, so that there is time for it: 240 of some milliseconds, a checkpoint each 40.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors.torch import load_file

from tests.hosts import Host, Network, Ssh, until
from tests.launch.cluster.conftest import MALMOI, TINY, lines_of

STEPS, EVERY = 240, 40
BEGIN = 100  # the step at which a drill begins, two checkpoints and some steps after the start
REPORTED = "lost another process|no sign of life|does not answer|stopped by a signal or with its launcher"
RESUMES = "pretrain: (ended with|the watchdog ended it) .* resuming"
HANG_S = 30  # far longer than any place of these steps takes, on a busy machine, too
LONG = 600.0  # seconds that a start may take on a machine that others use, too
SETTINGS = (
    *TINY, f"pretrain.steps={STEPS}", "pretrain.global_batch=12", f"pretrain.saved.checkpoint_every={EVERY}",
    "pretrain.saved.keep_checkpoints=5", "pretrain.optimizer.lr=1.0e-4",
)  # fmt: skip
WORKER = "-m launch pretrain"  # in the command lines of processes that train, and in their launcher's


class Site(NamedTuple):
    """Hosts, what a shell on the first one has from which ssh leads to all, their servers, and a small disk."""

    network: Network
    environment: dict[str, str]
    ssh: Ssh
    servers: list[subprocess.Popen]
    disk: Path

    @property
    def hosts(self) -> list[Host]:
        return self.network.hosts


class Training:
    """One in ``folder``, which holds ``runs`` with a token store.

    It is on two hosts, a process each, unless ``shape`` says otherwise. ``log``: what all starts say.
    """

    def __init__(self, site: Site, folder: Path, *, log: Path | None = None) -> None:
        self.site, self.folder, self.pretrain = site, folder, folder / "runs" / "smoke" / "pretrain"
        self.script = folder / "runs" / "smoke" / "launch" / "run.sh"
        self._log = log or folder / "log"
        self.shape(2)

    def shape(
        self, hosts: int, processes: int = 1, *, elastic: bool = False, hang_s: float = HANG_S, engine: str = "auto"
    ) -> None:
        """Write the scripts for N hosts and processes of each, as a user does by the command."""
        names = ", ".join(host.name for host in self.site.hosts[:hosts])
        (self.folder / "site.yaml").write_text(
            "environment: {DS_ACCELERATOR: cpu}\n"
            f"pretrain: {{gpus: 0, cpus: {processes}, processes: {processes}}}\n"
            f"hosts: {{names: [{names}], elastic: {str(elastic).lower()}}}\n"
        )
        settings = [*SETTINGS, f"pretrain.watch.hang_minutes={hang_s / 60}", f"pretrain.engine.name={engine}"]
        command = [MALMOI, "launch", "hosts", "smoke", *settings, "--runs", "runs", "--stages", "pretrain"]
        subprocess.run(command, check=True, cwd=self.folder, env=self.site.environment, capture_output=True)

    def start(self) -> None:
        """Run ``run.sh`` on the first host."""
        with self._log.open("ab") as out:
            self.process = subprocess.Popen(
                self.site.hosts[0].inside(["bash", str(self.script)]), env=self.site.environment,
                cwd=self.folder, stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip

    @property
    def log(self) -> str:
        """What all starts have said so far."""
        return self._log.read_text("utf-8", "replace")

    def until(self, is_true: Callable[[], bool]) -> float:
        """Wait for it while the script is at work; the seconds that took."""
        before = time.monotonic()
        until(lambda: is_true() or self.process.poll() is not None, LONG)
        assert is_true(), self.log[-6000:]
        return time.monotonic() - before

    def reached(self) -> int:
        """The last step that has a line."""
        return len(lines_of(self.folder / "runs"))

    def until_step(self, step: int) -> None:
        """Reached before the end."""
        self.until(lambda: self.reached() >= step)
        assert self.reached() < STEPS

    def until_said(self, words: str, since: int = 0) -> float:
        """``since``: the length of the log before what is to be said."""
        return self.until(lambda: re.search(words, self.log[since:]) is not None)

    def interrupt(self) -> int:
        """Ctrl-C; the exit code."""
        os.killpg(self.process.pid, signal.SIGINT)
        return self.end()

    def give_up(self) -> None:
        """End what is left of it."""
        for host in self.site.hosts:
            host.kill(str(self.script.parent))
            host.kill(WORKER)

    def until_gone(self) -> None:
        """Until nothing that the script started is left."""
        words = (WORKER, str(self.script))
        until(lambda: not any(host.processes(of) for host in self.site.hosts for of in words), LONG)

    def end(self) -> int:
        """Its exit code, when it has ended."""
        return self.process.wait(timeout=LONG)

    def workers(self, host: int) -> list[int]:
        """Processes that train there."""
        there = self.site.hosts[host]
        return [number for number in there.processes(WORKER) if number not in self.launchers(host)]

    def launchers(self, host: int) -> list[int]:
        """torchrun there."""
        return self.site.hosts[host].processes("torchrun --")

    def checkpoints(self) -> list[Path]:
        """Oldest first."""
        return sorted((self.pretrain / "checkpoints").glob("step-?????????"))

    def saved(self) -> list[int]:
        """Their steps."""
        return [int(path.name.removeprefix("step-")) for path in self.checkpoints()]


def distance(training: Training, other: Training) -> tuple[float, float]:
    """The largest differences between two that have ended: of the losses of their steps, and of their weights."""
    lines, others = lines_of(training.folder / "runs"), lines_of(other.folder / "runs")
    assert [line["step"] for line in lines] == [line["step"] for line in others] == list(range(1, STEPS + 1))
    losses = max(abs(line["loss"] - its["loss"]) for line, its in zip(lines, others, strict=True))
    mine, its = (load_file(one.pretrain / "model" / "model.safetensors") for one in (training, other))
    assert mine.keys() == its.keys()
    return losses, max(float(torch.max(torch.abs(mine[name] - its[name]))) for name in mine)


def print_row(name: str, reported: float, ended: float, again: int) -> None:
    """Print what a drill cost: seconds until its sentence, until all had ended, and steps that are trained again."""
    print(f"\n{name}: reported after {reported:.1f} s, all ended after {ended:.1f} s, {max(0, again)} steps again")


def assert_undisturbed(training: Training, undisturbed: Training) -> None:
    """The same losses and weights."""
    losses, weights = distance(training, undisturbed)
    print(f"furthest from the undisturbed training: losses {losses:.1e}, weights {weights:.1e}")
    assert losses < 1e-5 and weights < 1e-5


def copied(runs: Path, folder: Path) -> Path:
    """``folder`` with a runs folder of its own."""
    folder.mkdir(exist_ok=True)
    shutil.copytree(runs, folder / "runs")
    return folder
