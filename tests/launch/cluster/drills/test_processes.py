"""A process of two training hosts dies or hangs: the training ends as if undisturbed, or says what to do.

``pytest -m cluster -rP tests/launch/cluster/drills`` prints for each drill how long it took to be noticed and how
many steps were done again.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess

import pytest

from tests.launch.cluster.drills.training import (
    BEGIN,
    REPORTED,
    RESUMES,
    STEPS,
    Site,
    Training,
    assert_undisturbed,
    print_row,
)

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def kill_a_rank(training: Training) -> None:
    os.kill(training.workers(1)[0], signal.SIGKILL)


def kill_the_first_rank(training: Training) -> None:
    os.kill(training.workers(0)[0], signal.SIGKILL)


def kill_what_a_host_trains(training: Training) -> None:
    for number in training.launchers(1) + training.workers(1):
        os.kill(number, signal.SIGKILL)


def kill_a_launcher(training: Training) -> None:
    os.kill(training.launchers(1)[0], signal.SIGKILL)


def hang_a_rank(training: Training) -> None:
    os.kill(training.workers(1)[0], signal.SIGSTOP)


DRILLS = {  # by the step at which they begin: each after another checkpoint
    "a rank is killed": (50, kill_a_rank),
    "the first rank is killed": (90, kill_the_first_rank),
    "all that a host trains is killed": (130, kill_what_a_host_trains),
    "a launcher is killed": (170, kill_a_launcher),
    "a rank hangs": (210, hang_a_rank),
}


def test_one_training_survives_all_of_them(training: Training, undisturbed: Training) -> None:
    training.start()
    for name, (step, begins) in DRILLS.items():
        training.until_step(step)
        said = len(training.log)
        begins(training)
        reached = training.reached()
        reported = training.until_said(REPORTED, said)
        print_row(name, reported, reported + training.until_said(RESUMES, said), reached - training.saved()[-1])
        if begins is kill_a_launcher:  # its processes found out, and saved
            assert training.saved()[-1] >= reached - 1
    assert training.end() == 0, training.log[-6000:]
    assert re.search(r"\[rank 0\] lost another process: .*; the same command resumes", training.log)
    assert "no sign of life from rank 1" in training.log
    assert_undisturbed(training, undisturbed)


def test_after_a_host_is_back_the_same_script_resumes(site: Site, training: Training, undisturbed: Training) -> None:
    training.start()
    training.until_step(BEGIN)
    site.hosts[1].kill()
    reached = training.reached()
    reported = training.until_said(REPORTED)
    ended = reported + training.until_said("pretrain: ended with 255 and saved nothing newer than")
    assert training.end() == 255
    assert re.search(rf"connect to host {site.hosts[1].name} port 22: Connection refused", training.log)
    assert "fix the cause, then run this script again" in training.log.splitlines()[-1]
    again = reached - training.saved()[-1]
    server = site.ssh.serve(site.hosts[1])
    try:
        training.start()
        assert training.end() == 0, training.log[-6000:]
    finally:
        site.servers.append(server)
    print_row("a host is gone", reported, ended, again)
    assert_undisturbed(training, undisturbed)


def test_elastic_hosts_continue_without_a_lost_one(site: Site, training: Training, undisturbed: Training) -> None:
    training.shape(2, elastic=True)
    training.start()
    training.until_step(BEGIN)
    site.hosts[1].kill()
    reached, before = training.reached(), training.saved()[-1]
    reported = training.until_said(REPORTED)
    on = reported + training.until_said("resuming from")
    site.servers.append(site.ssh.serve(site.hosts[1]))
    assert training.end() == 0, training.log[-6000:]
    print_row("a host is gone, elastic", reported, on, reached - before)
    assert_undisturbed(training, undisturbed)


def test_a_second_script_is_refused_while_processes_of_a_killed_one_run(
    site: Site, training: Training, undisturbed: Training
) -> None:
    training.start()
    training.until_step(BEGIN)
    training.process.kill()
    training.process.wait()
    command = site.hosts[0].inside(["bash", str(training.script)])
    second = subprocess.run(command, env=site.environment, capture_output=True, text=True)
    assert second.returncode == 2 and "run.sh is at work already, or what it started is" in second.stderr
    assert training.reached() < STEPS
    training.until_gone()
    training.start()
    assert training.end() == 0, training.log[-6000:]
    assert_undisturbed(training, undisturbed)
