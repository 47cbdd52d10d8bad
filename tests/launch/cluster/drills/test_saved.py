"""Full disks, damaged checkpoints and other numbers of processes: the result is that of an undisturbed training."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.launch.cluster.drills.training import BEGIN, EVERY, Site, Training, assert_undisturbed, copied, print_row

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
WEIGHTS = "model/model.safetensors"


def truncated(checkpoint: Path) -> None:
    path = checkpoint / WEIGHTS
    os.truncate(path, path.stat().st_size // 2)


def flipped(checkpoint: Path) -> None:
    path = checkpoint / "optimizer.safetensors"
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(data)


def without_a_file(checkpoint: Path) -> None:
    (checkpoint / "loop.json").unlink()


def test_damaged_checkpoints_are_skipped(training: Training, undisturbed: Training) -> None:
    training.start()
    training.until_step(4 * EVERY)
    assert training.interrupt() == 75
    *_, whole, first, second, third = training.checkpoints()
    for tear, checkpoint in ((truncated, first), (flipped, second), (without_a_file, third)):
        tear(checkpoint)
    training.start()
    assert training.end() == 0, training.log[-6000:]
    for checkpoint in (first, second, third):
        assert re.search(rf"{checkpoint.name}\S* .*; using the checkpoint before it", training.log)
    assert f"resuming from {whole}" in training.log
    assert_undisturbed(training, undisturbed)


def test_after_a_full_disk_the_same_script_resumes(
    site: Site, packed: Path, undisturbed: Training, tmp_path: Path
) -> None:
    training = Training(site, copied(packed, site.disk / "home"), log=tmp_path / "log")
    training.start()
    training.until_step(BEGIN)
    ballast = site.disk / "ballast"
    subprocess.run(["dd", "if=/dev/zero", f"of={ballast}", "bs=64k"], capture_output=True)  # until the disk is full
    reached = training.reached()
    reported = training.until_said("make room")
    ended = reported + training.until_said("pretrain: ended with 1 and saved nothing newer than")
    assert training.end() == 1
    again = reached - training.saved()[-1]
    ballast.unlink()
    training.start()
    assert training.end() == 0, training.log[-6000:]
    print_row("the disk is full", reported, ended, again)
    assert_undisturbed(training, undisturbed)


def test_four_processes_then_two_then_three(training: Training, undisturbed: Training) -> None:
    """On two hosts, on two and on three, sent back twice by Ctrl-C; each process writes its part of a checkpoint."""
    for (hosts, processes), step in (((2, 2), BEGIN // 2), ((2, 1), BEGIN)):
        training.shape(hosts, processes, engine="deepspeed")
        training.start()
        training.until_step(step)
        assert training.interrupt() == 75
        assert f"a step is {hosts * processes} processes" in training.log
    training.shape(3, 1, engine="deepspeed")
    training.start()
    assert training.end() == 0, training.log[-6000:]
    assert "a step is 3 processes" in training.log
    assert_undisturbed(training, undisturbed)
