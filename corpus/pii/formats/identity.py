"""Numbers that stand for a person: resident and foreigner registration, passport, driving licence, health insurance.

Registration numbers lost their check digit in October 2020, so only the date in front is checked. Replacements use the
region digits 97 to 99, which no office has.
"""

from __future__ import annotations

import re
from random import Random

from corpus.pii.formats.phones import BARE_END, BARE_START, END, START
from corpus.pii.formats.places import REGIONS, SHORT_REGION_PATTERN
from corpus.pii.formats.shapes import digits_of, draw_digits, is_birth_date, looks_typed, refill, resident_check_digit
from corpus.pii.types import BY_LABEL, CERTAIN, CLEAR, LIKELY, WEAK, Format, PiiType, Scope, words

# --- RRN and FRN


def _registration(century_digits: str, separator: str) -> re.Pattern[str]:
    date = "(?P<date>[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01]))"
    start, end = (START, END) if separator else (BARE_START, BARE_END)
    return re.compile(rf"{start}{date}{separator}(?P<century>[{century_digits}])[0-9]{{6}}{end}")


def _registration_formats(century_digits: str) -> tuple[Format, ...]:
    return (
        Format(_registration(century_digits, "(?: ?- ?| {1,2})"), CLEAR, _has_birth_date, digits=13),
        Format(_registration(century_digits, "(?: ?[·~_] ?)"), LIKELY, _has_birth_date, digits=13),
        Format(_registration(century_digits, "(?: ?[./:,] ?)"), BY_LABEL, _has_birth_date, digits=13),
        Format(_registration(century_digits, ""), WEAK, _is_no_bar_code, digits=13),
    )


def _has_birth_date(match: re.Match[str], label: str | None) -> bool:
    return is_birth_date(match["date"], match["century"])


def _is_no_bar_code(match: re.Match[str], label: str | None) -> bool:
    """Bar codes of Korea have 13 digits too, 880 in front and a check digit behind: without a label it is one."""
    digits = match.group()
    if label not in ("RRN", "FRN"):
        odd, even = (sum(map(int, digits[start:12:2])) for start in (0, 1))
        is_bar_code = digits.startswith("880") and -(odd + 3 * even) % 10 == int(digits[12])
        if is_bar_code or looks_typed(digits):
            return False
    return _has_birth_date(match, label)


def _fake_registration(rng: Random, value: str) -> str:
    """Same century digit (so same type), another birthday, region 97-99, the check digit of old numbers."""
    century = digits_of(value)[6]
    year = rng.randrange(0, 20) if century in "3478" else rng.randrange(40, 100)
    front = f"{year:02}{rng.randrange(1, 13):02}{rng.randrange(1, 29):02}{century}"
    twelve = front + str(rng.randrange(97, 100)) + draw_digits(rng, 3)
    return refill(value, twelve + str(resident_check_digit(twelve, 11 if century in "1234" else 13)))


# --- PASSPORT

PASSPORT_NUMBER = re.compile(
    r"(?<![0-9A-Za-z])(?<![0-9A-Za-z]-)[MSRODGmsrodg](?:[0-9]{8}|[0-9]{3}[A-Za-z][0-9]{4})(?![0-9A-Za-z]|-[0-9A-Za-z])"
)
PASSPORT_PARTED = re.compile(
    r"(?<![0-9A-Za-z])(?<![0-9A-Za-z]-)[MSRODGmsrodg][ \-](?:[0-9]{8}|[0-9]{3}[A-Za-z][0-9]{4})"
    r"(?![0-9A-Za-z]|-[0-9A-Za-z])"
)
_PASSPORT_SCOPE = Scope(
    "0-9", "(?:(?<=[MSRODGmsrodg][0-9])|(?<=[MSRODGmsrodg][ \\-][0-9]))[0-9]{2}[0-9A-Za-z][0-9]{4}", before=4, after=8
)


def _fake_passport(rng: Random, value: str) -> str:
    letter = rng.choice("ABCDEFGH")
    inner = re.sub("[A-Za-z]", letter if value[2:].isupper() else letter.lower(), value[1:])
    return value[0] + refill(inner, draw_digits(rng, len(digits_of(value))))


# --- DRIVER

_LICENCE_REGION = "(?:1[1-9]|2[0-68])"
LICENCE = re.compile(rf"{START}{_LICENCE_REGION}(?P<sep> ?- ?| )[0-9]{{2}}(?P=sep)[0-9]{{6}}(?P=sep)[0-9]{{2}}{END}")
LICENCE_ODD = re.compile(
    rf"{START}{_LICENCE_REGION}(?P<sep>[-._~·/])[0-9]{{2}}(?P=sep)[0-9]{{6}}(?P=sep)?[0-9]{{2}}{END}"
)
LICENCE_BARE = re.compile(rf"{BARE_START}{_LICENCE_REGION}[0-9]{{10}}{BARE_END}")
LICENCE_OLD = re.compile(
    rf"(?<![가-힣A-Za-z0-9]){SHORT_REGION_PATTERN} ?-?(?:[0-9]{{2}}[- ])?"
    rf"[0-9]{{2}}(?: ?[-_~.] ?| )[0-9]{{6}}(?: ?[-_~.] ?| |)[0-9]{{2}}{END}"
)
_DAY = "(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])"
_TIMESTAMP = re.compile(f"20[0-9]{{2}}{_DAY}[0-9]{{4}}|[0-2][0-9]{_DAY}(?:[01][0-9]|2[0-3])[0-5][0-9][0-5][0-9]")
"""YYYYMMDD and a time or a serial number, YYMMDDHHMMSS."""


def _fake_licence(rng: Random, value: str) -> str:
    region = rng.choice(words("11 12 13 14 15 16 17 18 21 22 23 24 25 26 28"))
    name = "" if value[0].isdigit() else rng.choice(sorted(REGIONS))
    lead = region if len(digits_of(value)) == 12 else ""
    return name + refill(value[len(name) :], lead + draw_digits(rng, 10))


# --- HEALTH

HEALTH_NUMBER = re.compile(rf"{START}[1-9](?: ?[-_~.] ?| )?[0-9]{{10}}{BARE_END}(?! ?원)")


# --- rows

RRN = PiiType(
    "RRN",
    _registration_formats("1-4"),
    ("주민등록", "주민번호", "주민", "rrn", "jumin", "ssn"),
    _fake_registration,
    "000101-3970000",
)
FRN = PiiType(
    "FRN", _registration_formats("5-8"), ("외국인등록", "외국인", "거소", "frn"), _fake_registration, "000101-7970000"
)
PASSPORT = PiiType(
    "PASSPORT",
    (
        # G stands for official passports, but also for many product codes
        Format(PASSPORT_NUMBER, LIKELY, lambda m, label: m[0][0] not in "Gg" or label == "PASSPORT", _PASSPORT_SCOPE),
        Format(PASSPORT_PARTED, BY_LABEL, scope=_PASSPORT_SCOPE),
    ),
    ("여권", "passport"),
    _fake_passport,
    "M000A0000",
)
DRIVER = PiiType(
    "DRIVER",
    (
        Format(LICENCE, CLEAR, digits=12, leads="12"),
        Format(LICENCE_ODD, BY_LABEL, digits=12, leads="12"),
        Format(
            LICENCE_BARE,
            WEAK,
            lambda m, label: label == "DRIVER" or not (_TIMESTAMP.fullmatch(m[0]) or looks_typed(m[0])),
            digits=12,
            leads="12",
        ),
        Format(LICENCE_OLD, CERTAIN, digits=10, leads=""),
    ),
    ("면허", "licence", "license"),
    _fake_licence,
    "11-00-000000-00",
)
HEALTH = PiiType(
    "HEALTH",
    (Format(HEALTH_NUMBER, BY_LABEL, digits=11, leads="123456789"),),
    words(
        "건강보험 의료보험 보험증 증번호 건보 의료급여 건강보험카드 의료보험카드 nhis healthinsurance health_insurance"
    ),
    lambda rng, value: refill(value, rng.choice("12345678") + draw_digits(rng, 10)),
    "1-0000000000",
)
