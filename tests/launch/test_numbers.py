"""How numbers are written in tables, reports and log lines."""

from __future__ import annotations

import math

import pytest

from launch.numbers import count, duration, number, share

SECONDS = [
    (3, "3 s"),
    (89, "89 s"),
    (90, "1.5 min"),
    (5 * 60, "5.0 min"),
    (9.9 * 60, "9.9 min"),
    (9.96 * 60, "10 min"),
    (89 * 60, "89 min"),
    (90 * 60, "1.5 h"),
    (35 * 3600, "35 h"),
    (36 * 3600, "1.5 days"),
    (86_400 * 699, "699 days"),
    (86_400 * 700, "2 years"),
    (150, "2.5 min"),
    (600, "10 min"),
    (7200, "2.0 h"),
    (86_400 * 12, "12 days"),
    (3.2e9, "101 years"),
]


@pytest.mark.parametrize(("seconds", "text"), SECONDS)
def test_durations_have_fitting_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_numbers_of_tables_have_separators_and_a_dash_where_there_is_none() -> None:
    assert [number(value) for value in (None, math.nan, 0.0, 1234.567, -1.005)] == [
        "–",
        "–",
        "0.00",
        "1,234.57",
        "-1.00",
    ]
    assert number(1234.567, 0) == "1,235"
    assert count(1_234_567.4) == "1,234,567"
    assert [share(1, 3), share(2, 2), share(0, 5), share(1, 0)] == ["33.33 %", "100.00 %", "0.00 %", "–"]
