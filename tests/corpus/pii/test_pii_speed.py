"""Linear time, and the clues that make detection fast lose nothing."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.pii import detect
from corpus.pii.detect import find_pii
from corpus.pii.table import TABLE

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
    half, whole = (min(seconds_for(unit * (size // len(unit))) for _ in range(2)) for size in (500_000, 1_000_000))
    assert whole < 3 * half + 0.5
    assert whole < 5


FRAGMENTS = st.sampled_from(
    [kind.example for kind in TABLE]
    + [word for kind in TABLE for word in kind.context[:2]]
    + [
        "서울 강남구 ",
        "윤슬로 12",
        " ",
        ", ",
        "은 ",
        "로 ",
        "(",
        ")",
        "-",
        ".",
        ":",
        "12",
        "3조 4567억",
        "가" * 40,
        "a" * 20,
    ]
)


@given(st.lists(FRAGMENTS, max_size=12).map("".join))
def test_searching_around_clues_finds_what_searching_everywhere_finds(text: str) -> None:
    expected = [
        (match.span(), kind.name)
        for _, forms in detect._SCOPES
        for kind, form in forms
        for match in form.pattern.finditer(text)
    ]
    found = {
        (match.span(), kind.name)
        for scope, forms in detect._SCOPES
        for start, end in detect._windows(text, scope)
        for kind, form in forms
        for match in form.pattern.finditer(text, start, end)
    }
    assert found == set(expected)


def test_windows_meet_but_never_overlap() -> None:
    text = "010-0000-0000 " + "가" * 5 + " 010-0000-0001" + "가" * 300 + "@" + "가" * 30 + "@"
    for scope, _ in detect._SCOPES:
        windows = list(detect._windows(text, scope))
        assert all(left[1] < right[0] for left, right in pairwise(windows))
