"""The cable of a host is cut: for 20 seconds that is waited for, and longer than the watchdog's patience it is told."""

from __future__ import annotations

import time

import pytest

from tests.launch.cluster.drills.training import GOES_ON, Site, Training, assert_undisturbed, tell

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
SHORT_S, HANG_S = 20, 60  # after a short one packets may wait as long again, until they are sent once more


def test_a_short_cut_is_waited_for_and_a_longer_one_is_told_and_the_script_starts_again(
    site: Site, training: Training, undisturbed: Training
) -> None:
    training.shape(2, hang_s=HANG_S)
    training.start()
    training.until_step(50)
    site.hosts[1].cut()
    reached = training.reached()
    time.sleep(SHORT_S)
    assert training.reached() <= reached + 2  # one that was on its way
    site.hosts[1].mend(site.network.bridge)
    more = training.until(lambda: training.reached() > reached + 2)
    print(f"\na cut of {SHORT_S} s: trained again after {SHORT_S + more:.1f} s")

    training.until_step(90)
    assert "ended with" not in training.log
    site.hosts[1].cut()
    reached = training.reached()
    told = training.until_said("a device, the network or a disk does not answer")
    time.sleep(5)  # both hosts leave by themselves
    site.hosts[1].mend(site.network.bridge)
    ended = told + 5 + training.until_said(GOES_ON)
    tell(f"a cut of more than {HANG_S} s", told, ended, reached - training.saved()[-1])
    assert training.end() == 0, training.log[-6000:]
    assert_undisturbed(training, undisturbed)
