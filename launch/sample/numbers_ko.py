"""Numbers, prices and dates as Koreans write them: 1만 2,000원, 3억 5,000만 원, 지난 4일, 1987년 3월 4일."""

from __future__ import annotations

from datetime import date
from random import Random

WEEKDAYS = "월화수목금토일"
TENS = ("", "열", "스물", "서른", "마흔", "쉰", "예순", "일흔", "여든", "아흔")
ONES = ("", "하나", "둘", "셋", "넷", "다섯", "여섯", "일곱", "여덟", "아홉")
ONES_BEFORE_NOUN = ("", "한", "두", "세", "네", "다섯", "여섯", "일곱", "여덟", "아홉")


def won(amount: int) -> str:
    """``won(350_000_000) == "3억 5,000만 원"``; below ten thousand "9,500원"."""
    if amount < 10_000:
        return f"{amount:,}원"
    return f"{grouped(amount)} 원" if amount % 10_000 == 0 else f"{grouped(amount)}원"


def grouped(number: int) -> str:
    """A number by ten thousands: 1조 2,300억, 4만 5,000."""
    parts = []
    for size, name in ((10**12, "조"), (10**8, "억"), (10**4, "만")):
        if number >= size:
            parts.append(f"{number // size:,}{name}")
            number %= size
    if number or not parts:
        parts.append(f"{number:,}")
    return " ".join(parts)


def casual_won(amount: int, rng: Random) -> str:
    """A price as in a chat: 12,000원, 1만2천원, 만이천원은 아니다."""
    thousands, rest = divmod(amount, 1_000)
    if rest or amount < 1_000:
        return f"{amount:,}원"
    tens, ones = divmod(thousands, 10)
    if not tens:
        return rng.choice((f"{amount:,}원", f"{ones}천 원", f"{ones}천원"))
    short = f"{tens:,}만{f'{ones}천' if ones else ''}"
    return rng.choice((f"{amount:,}원", f"{short} 원", f"{short}원"))


def count(number: int, unit: str) -> str:
    """``count(12_300, "명") == "1만 2,300명"``."""
    return f"{grouped(number)}{unit}"


def native(number: int) -> str:
    """Native numeral before a counter, 1 to 99: 세, 스무, 스물한."""
    tens, ones = divmod(number, 10)
    if number == 20:
        return "스무"
    return TENS[tens] + ONES_BEFORE_NOUN[ones]


def full_day(day: date) -> str:
    """1987년 3월 4일."""
    return f"{day.year}년 {day.month}월 {day.day}일"


def month(day: date) -> str:
    """1987년 3월."""
    return f"{day.year}년 {day.month}월"


def weekday(day: date) -> str:
    """월요일 …"""
    return f"{WEEKDAYS[day.weekday()]}요일"


def news_day(day: date, rng: Random) -> str:
    """How an article that appears on or just after ``day`` names it."""
    return rng.choice(
        (f"{day.day}일", f"지난 {day.day}일", f"{day.month}월 {day.day}일", f"{day.day}일({WEEKDAYS[day.weekday()]})")
    )


def clock(hour: int, minute: int) -> str:
    """오후 3시 20분; 0 minutes are left out."""
    half = "오전" if hour < 12 else "낮" if hour == 12 else "오후"
    text = f"{half} {hour if hour <= 12 else hour - 12}시"
    return f"{text} {minute}분" if minute else text
