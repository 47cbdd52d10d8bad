"""RRN and FRN: registration numbers of residents and foreigners, YYMMDD-CNNNNNN.

Numbers issued since October 2020 end in random digits, so only the birth date is checked; the old check digit is used
for replacements and against serial numbers. Replacements use the region digits 97 to 99, which no office has.
"""

from __future__ import annotations

import re
from random import Random

from corpus.pii.formats.shapes import digits_of, draw_digits, is_birth_date, looks_typed, refill
from corpus.pii.formats.tel import BARE_END, BARE_START, END, START
from corpus.pii.types import BY_LABEL, CLEAR, COMPANY, LIKELY, OTHER, WEAK, Format, PiiType

_WEIGHTS = (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)
_SERIAL_WORD = re.compile(r"(?:#|번호|(?i:no|id|lot|[sp]/n)\.?)(?:[은는:]| ?[:：=])? ?$")


def resident_check_digit(first_twelve: str, base: int = 11) -> int:
    """The pre-2020 check digit; ``base`` is 11 for residents, 13 for foreigners."""
    total = sum(weight * int(digit) for weight, digit in zip(_WEIGHTS, first_twelve, strict=True))
    return (base - total % 11) % 10


def _registration(century_digits: str, separator: str) -> re.Pattern[str]:
    dot = "[.]?" if "-" in separator else ""
    date = f"(?P<date>[0-9]{{2}}{dot}(?:0[1-9]|1[0-2]){dot}(?:0[1-9]|[12][0-9]|3[01]))"
    start, end = (START, END) if separator else (BARE_START, BARE_END)
    return re.compile(rf"{start}{date}{separator}(?P<century>[{century_digits}])[0-9]{{6}}{end}")


def _registration_formats(century_digits: str) -> tuple[Format, ...]:
    return (
        Format(_registration(century_digits, "(?: ?- ?)"), CLEAR, _has_birth_date, digits=13),
        Format(_registration(century_digits, "(?: ?[·~_*] ?| {1,2})"), LIKELY, _is_likely_age, digits=13),
        Format(_registration(century_digits, "(?: ?[./:,] ?|--)"), BY_LABEL, _has_birth_date, digits=13),
        Format(_registration(century_digits, ""), WEAK, _is_no_bar_code, digits=13),
    )


def _has_birth_date(match: re.Match[str], label: str | None) -> bool:
    is_date = is_birth_date(digits_of(match["date"]), match["century"])
    return is_date and label != COMPANY and not _is_serial(match, label)


def _is_serial(match: re.Match[str], label: str | None) -> bool:
    """``문의번호 250914-1203847``: this century's date and a serial number; who was born in 1925 has a check digit."""
    digits = digits_of(match[0])
    if digits[:2] >= "30" or match["century"] not in "12" or digits[12] == str(resident_check_digit(digits[:12])):
        return False
    is_named = _SERIAL_WORD.search(match.string, max(0, match.start() - 9), match.start())
    return label == OTHER or (label not in ("RRN", "FRN") and bool(is_named))


def _is_likely_age(match: re.Match[str], label: str | None) -> bool:
    """Excludes ``241225 1234567``, a date and a number: nobody born in 1924 without a label."""
    is_old = match["century"] in "1256" and match["date"] < "3"
    return (label in ("RRN", "FRN") or not is_old) and _has_birth_date(match, label)


def _is_no_bar_code(match: re.Match[str], label: str | None) -> bool:
    """Excludes Korean bar codes without a label: 13 digits with prefix 880 and a check digit."""
    digits = match.group()
    if label not in ("RRN", "FRN"):
        odd, even = (sum(map(int, digits[start:12:2])) for start in (0, 1))
        is_bar_code = digits.startswith("880") and -(odd + 3 * even) % 10 == int(digits[12])
        if is_bar_code or looks_typed(digits) or _is_milliseconds(digits):
            return False
    return _has_birth_date(match, label)


def _is_milliseconds(digits: str) -> bool:
    """Since 1970, in 2020 to 2027: who was born in 2016 or 2017 has a check digit."""
    base = 11 if digits[6] in "34" else 13
    is_checked = digits[12] == str(resident_check_digit(digits[:12], base))
    return digits[:2] in ("16", "17") and digits[6] in "3478" and not is_checked


def _fake_registration(rng: Random, value: str) -> str:
    """The same century digit (so the same type), another birth date, region 97-99, a valid check digit."""
    century = digits_of(value)[6]
    year = rng.randrange(0, 20) if century in "3478" else rng.randrange(40, 100)
    front = f"{year:02}{rng.randrange(1, 13):02}{rng.randrange(1, 29):02}{century}"
    twelve = front + str(rng.randrange(97, 100)) + draw_digits(rng, 3)
    return refill(value, twelve + str(resident_check_digit(twelve, 11 if century in "1234" else 13)))


RRN = PiiType("RRN", _registration_formats("1-4"), _fake_registration, "000101-3970000")
FRN = PiiType("FRN", _registration_formats("5-8"), _fake_registration, "000101-7970000")
