"""Repair of text that was decoded with the wrong encoding: exact, or not at all."""

from __future__ import annotations

import time
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.quality.mojibake import repair_mojibake

TEXT = "어제는 「비」가 왔다ㅋㅋ.\n오늘은 (康宗) 2시에 만나자!"


def as_windows(content: bytes) -> str:
    """Windows-1252, with control characters for undefined bytes, as browsers read it."""
    return "".join(
        bytes([byte]).decode("cp1252") if byte not in (0x81, 0x8D, 0x8F, 0x90, 0x9D) else chr(byte) for byte in content
    )


DAMAGED = {
    "UTF-8 as Latin-1": TEXT.encode().decode("latin-1"),
    "UTF-8 as Windows-1252": as_windows(TEXT.encode()),
    "UTF-8 twice": as_windows(as_windows(TEXT.encode()).encode()),
    "CP949 as Latin-1": TEXT.encode("cp949").decode("latin-1"),
    "CP949 as Windows-1252": as_windows(TEXT.encode("cp949")),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_damage_is_repaired_exactly(kind: str) -> None:
    assert DAMAGED[kind] != TEXT
    assert repair_mojibake(DAMAGED[kind]) == (TEXT, 2)
    assert repair_mojibake(f"제목: {DAMAGED[kind]}") == (f"제목: {TEXT}", 2)


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        "가나다 ········ 12쪽, …………",
        "점수는 ±±±± 3.5 °C °C 였다",
        "Größe déjà vu, São Tomé, ½ ¾ ¼ «citação»",
        TEXT.encode().decode("latin-1")[:-1] + "\xec",  # a byte is missing
        TEXT.encode().decode("cp949", "replace"),
        "",
    ],
)
def test_other_text_stays(text: str) -> None:
    last = text.splitlines()[-1:] or [""]
    assert repair_mojibake(last[0]) == (last[0], 0)


def test_utf8_read_as_cp949_is_repaired_where_no_byte_is_lost() -> None:
    lines = ["처음 봄비, 구름 3.", "하늘이 맑다.", "ok 봄비 구름"]
    damaged = "\n".join(line.encode().decode("cp949", "replace") for line in lines)
    whole, lost, other = damaged.split("\n")
    assert "�" in lost and "�" not in whole + other and "구름" not in damaged
    assert repair_mojibake(damaged) == ("\n".join([lines[0], lost, lines[2]]), 2)
    merged = normalize("NFC", whole)  # files are read as NFC
    assert merged != whole and repair_mojibake(merged) == (lines[0], 1)


@given(st.text(st.sampled_from("가구봄비름국고기처매. 1a"), min_size=4, max_size=12))
def test_a_line_read_as_cp949_comes_back_whole_or_not_at_all(text: str) -> None:
    damaged = text.encode().decode("cp949", "replace")
    assert repair_mojibake(damaged)[0] in (text, damaged)


def test_han_characters_stay() -> None:
    text = "大韓民國은 民主共和國이다. 援助와 具體의 湲川 鍮器를 濡染."
    assert repair_mojibake(text) == (text, 0)


@given(st.text(st.characters(min_codepoint=0xAC00, max_codepoint=0xD7A3) | st.sampled_from(" .\n한국어"), max_size=60))
def test_korean_text_never_changes(text: str) -> None:
    assert repair_mojibake(text) == (text, 0)


@pytest.mark.parametrize("piece", ["ì•ˆ", "¾È³ç", "Ã¬", "é", "…", "ì \n", "\xec\x95"])
def test_time_grows_with_length_only(piece: str) -> None:
    seconds = []
    for size in (200_000, 400_000):
        start = time.process_time()
        repair_mojibake(piece * (size // len(piece)))
        seconds.append(time.process_time() - start)
    assert seconds[1] < 3 * seconds[0] + 0.5
