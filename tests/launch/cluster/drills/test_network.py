"""The network of a host is cut: a short cut only delays the training, a longer one is reported and it restarts."""

from __future__ import annotations

import time

import pytest

from tests.launch.cluster.drills.training import RESUMES, Site, Training, assert_undisturbed, print_row

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
SHORT_S, HANG_S = 20, 60  # after a short one packets may wait as long again, until they are sent once more


def test_a_short_cut_delays_and_a_longer_one_restarts_the_training(
    site: Site, training: Training, undisturbed: Training
) -> None:
    training.shape(2, hang_s=HANG_S)
    training.start()
    training.until_step(50)
    site.hosts[1].cut()
    reached = training.reached()
    time.sleep(SHORT_S)
    assert training.reached() <= reached + 2  # one that was on its way
    site.hosts[1].reconnect(site.network.bridge)
    more = training.until(lambda: training.reached() > reached + 2)
    print(f"\na cut of {SHORT_S} s: trained again after {SHORT_S + more:.1f} s")

    training.until_step(90)
    assert "ended with" not in training.log
    site.hosts[1].cut()
    reached = training.reached()
    reported = training.until_said("a device, the network or a disk does not answer")
    time.sleep(5)  # both hosts leave by themselves
    site.hosts[1].reconnect(site.network.bridge)
    ended = reported + 5 + training.until_said(RESUMES)
    print_row(f"a cut of more than {HANG_S} s", reported, ended, reached - training.saved()[-1])
    assert training.end() == 0, training.log[-6000:]
    assert_undisturbed(training, undisturbed)
