"""Variations of Korean text as web pages, messages and forms write it, and damaged records, drawn by seed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from random import Random
from typing import Any

DIGITS = str.maketrans("0123456789", "０１２３４５６７８９")
WORDS = (
    "전화", "접수", "계좌", "주문번호", "모델명", "사업자등록번호", "문의", "카드", "연락처", "주소", "여권", "사번",
    "담당", "버전", "총", "약", "제", "면허", "차량", "우편번호", "팩스", "생년월일", "성명", "비밀번호",
    "id", "tel", "No.", "ver",
)  # fmt: skip
PIECES = (
    "<b>", "</b>", "<br/>", "&amp;", "&nbsp;", "&#x27;", "http://example.com/가?a=1", "www.example.com",
    "#해시 #태그", "ㅋㅋㅋㅋㅋ", "ㅠㅠ", "!!!!!", "……", "😀😀", "(끝)", "[속보]", "▲", "■ ", "※ ",
    "ⓒ 무단 전재 및 재배포 금지", "大韓民國", "(韓國)", "ありがとう", "\u200b", "\xa0", "\t", "  ", "\\u0031",
    "%EA%B0%80", "@example", "RT ", "^^;", "~~", "1)", "가.", "= ", "| ", "<p class='x'>", "{{틀}}",
    "[[문서|글]]", "== 제목 ==", "'''", "&lt;", "��", "ë¬¸ìž", "뷁쉙퀡", "(사진=가온뉴스)", "가온 기자 = ",
    "기자 a@example.com", "입력 2021.01.02 03:04", "조회 12", "추천 3",
)  # fmt: skip
MARKS = ("-", ".", " ", "–", "‑", "―", "/", "·", "~", "_", "", "(", ")-")


def mangle(text: str, rng: Random, times: int = 3) -> str:
    """The text after ``times`` random changes."""
    for _ in range(times):
        text = rng.choice(CHANGES)(text, rng)
    return text


def _at_space(text: str, rng: Random, piece: str) -> str:
    places = [match.start() for match in re.finditer(r"\s|$", text)]
    place = rng.choice(places)
    return f"{text[:place]}{rng.choice(('', ' '))}{piece}{rng.choice(('', ' '))}{text[place:]}"


def _before_number(text: str, rng: Random) -> str:
    word, joint = rng.choice(WORDS), rng.choice((" ", ": ", "", "=", " : ", "은 ", "가 "))
    return re.sub(r"(?<![\d.-])(?=\d)", lambda _: f"{word}{joint}" if rng.random() < 0.3 else "", text)


def _other_marks(text: str, rng: Random) -> str:
    mark = rng.choice(MARKS)
    return re.sub(r"(?<=\d)-(?=\d)", lambda _: mark, text)


def _other_digits(text: str, rng: Random) -> str:
    return re.sub(r"\d", lambda match: str(rng.randrange(10)) if rng.random() < 0.1 else match[0], text)


def _wrap(text: str, rng: Random) -> str:
    width, lines = rng.randrange(20, 70), [""]
    for word in text.split(" "):
        lines = [*lines, word] if len(lines[-1]) + len(word) > width else [*lines[:-1], f"{lines[-1]} {word}"]
    return "\n".join(lines)


def _repeat(text: str, rng: Random) -> str:
    parts = re.split(r"(?<=[.?!])\s|\n", text)
    return rng.choice(" \n").join([text, *[rng.choice(parts)] * rng.randrange(1, 5)])


def _cut(text: str, rng: Random) -> str:
    start = rng.randrange(max(1, len(text) // 2))
    return text[start : start + rng.randrange(10, 300)]


CHANGES: tuple[Callable[[str, Random], str], ...] = (
    lambda text, rng: _at_space(text, rng, rng.choice(PIECES)),
    lambda text, rng: _at_space(text, rng, rng.choice(PIECES)),
    lambda text, rng: _at_space(text, rng, rng.choice(WORDS)),
    _before_number, _before_number, _other_marks, _other_digits, _wrap, _repeat, _cut,
    lambda text, rng: text.translate(DIGITS),
    lambda text, rng: unicodedata.normalize("NFD", text) if rng.random() < 0.3 else text,
    lambda text, rng: re.sub(r"(?<=\d)(?=\d)", lambda _: " " if rng.random() < 0.3 else "", text),
    lambda text, rng: text.replace(". ", rng.choice((".", ".\n", "。", " . ", "! ", "? "))),
    lambda text, rng: re.sub(r" ", lambda _: "" if rng.random() < 0.1 else " ", text),
    lambda text, rng: text.upper() if rng.random() < 0.3 else f"“{text}”",
)  # fmt: skip


def damaged(value: Any, rng: Random) -> Any:
    """A JSON value in which one part is missing, repeated, of another type or slightly different."""
    if isinstance(value, dict | list) and value and rng.random() < 0.8:
        key, copy = rng.choice([*value] if isinstance(value, dict) else range(len(value))), value.copy()
        if rng.random() < 0.15:
            del copy[key]
        elif rng.random() < 0.1 and isinstance(copy, list):
            copy.append(copy[key])
        else:
            copy[key] = damaged(copy[key], rng)
        return copy
    others: tuple[Any, ...] = (None, "", " ", 7, [], {}, "가")
    if isinstance(value, str):
        others += value + " ", " " + value, value[:-1], value[::-1], value.upper(), value * 2, "B-PS", "neutral"
    elif isinstance(value, int | float):
        others += value + 1, value - 1, value + 0.05, -value, str(value), 5 - value
    return rng.choice(others)


def damaged_rows(rows: list[Any], rng: Random) -> list[Any]:
    """Rows of which most are damaged, some are repeated, with another text or label."""
    repeated = [{**row, **{key: rng.choice(rows).get(key) for key in rng.sample([*row], 1)}} for row in rows[::4]]
    return [damaged(row, rng) if rng.random() < 0.5 else row for row in [*rows, *repeated]]
