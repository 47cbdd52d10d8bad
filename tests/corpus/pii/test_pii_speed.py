"""Hostile lines: twice the length takes about twice the time, whatever the machine."""

from __future__ import annotations

import time

import pytest

from corpus.pii.detect import find_pii

UNITS = [
    "1-",
    "a.",
    "@",
    "1",
    "가",
    "1.",
    "1 ",
    "(",
    "a@",
    "1:",
    "서울 강남구 ",
    "가1로 ",
    "http://a.b/",
    "010-",
    "www.",
    "http://a.b/가/",
    "@가",
    "주소 가로 ",
    "1번지 ",
    "가동 1호 ",
    "[",
    "１",
    "mac 0",
    "가 1-1",
    "a:b@",
    "은행 1-1-",
]


def seconds_for(text: str) -> float:
    started = time.process_time()
    find_pii(text)
    return time.process_time() - started


@pytest.mark.parametrize("unit", UNITS)
def test_hostile_lines_take_linear_time(unit: str) -> None:
    for _ in range(4):  # a busy machine may disturb a measurement; growth with the square fails in all of them
        half, whole = (min(seconds_for(unit * (size // len(unit))) for _ in range(2)) for size in (25_000, 50_000))
        if whole < 3 * half + 0.05:
            return
    raise AssertionError(f"{whole:.2f} s for twice the text of {half:.2f} s")
