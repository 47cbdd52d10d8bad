"""The detector against the plain way, sixteen passes of ``re``: the same spans; and in linear time."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.pii.detect import find_pii
from corpus.pii.formats.table import TABLE
from tests.corpus.pii.sixteen_passes import PASSES, find_by_sixteen_passes

PIECES = st.sampled_from(
    [kind.example for kind in TABLE]
    + [word for kind in TABLE for word in kind.context[:2]]
    + [
        "서울 강남구 ",
        "윤슬로 12",
        "번길 3",
        " 12번지",
        "@홍길동",
        " ",
        ", ",
        "은 ",
        "(",
        "-",
        ".",
        ":",
        "12",
        "/가",
        "０",
        "가" * 90,
    ]
)


def lines_of(path: Path, max_chars: int) -> list[str]:
    lines: list[str] = []
    size = 0
    with path.open("rb") as packed:
        stream = zstandard.ZstdDecompressor(max_window_size=2**28).stream_reader(packed)
        for record in io.TextIOWrapper(stream, "utf-8"):
            text = json.loads(record)["text"]
            lines += text.replace(". ", ".\n").split("\n")
            size += len(text)
            if size > max_chars:
                break
    return lines


def test_there_is_a_pass_for_each_type() -> None:
    assert [kind for kind, _ in PASSES] == list(TABLE)


@settings(max_examples=150, deadline=None)
@given(st.lists(PIECES, max_size=10).map("".join))
def test_clues_and_windows_lose_nothing(text: str) -> None:
    assert find_pii(text) == find_by_sixteen_passes(text)


@pytest.mark.parametrize("name", ["petitions", "nsmc_reviews", "techdocs", "kowiki", "law"])
def test_on_real_text_both_find_the_same(name: str, shared: Callable[[str], Path]) -> None:
    for line in lines_of(shared(f"data/corpora/{name}.jsonl.zst"), 60_000):
        assert find_pii(line) == find_by_sixteen_passes(line)


# --- hostile lines: twice the length takes about twice the time, on any machine

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
        if (whole := seconds_for(unit * (30_000 // len(unit)))) < 0.05:
            return
        half = min(seconds_for(unit * (15_000 // len(unit))) for _ in range(2))
        if whole < 3 * half + 0.05:
            return
    raise AssertionError(f"{whole:.2f} s for twice the text of {half:.2f} s")
