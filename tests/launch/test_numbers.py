"""How numbers are written in tables, reports and log lines."""

from __future__ import annotations

import pytest

from launch.numbers import duration

SECONDS = [
    (3, "3 s"),
    (150, "2.5 min"),
    (600, "10 min"),
    (7200, "2.0 h"),
    (86_400 * 12, "12 days"),
    (3.2e9, "101 years"),
]


@pytest.mark.parametrize(("seconds", "text"), SECONDS)
def test_durations_have_fitting_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text
