"""PASSPORT, DRIVER and HEALTH: numbers of passports, driving licenses and health insurance.

No block of these numbers is known to be unused, so replacements are random numbers of the same form.
"""

from __future__ import annotations

import re
from random import Random

from corpus.pii.formats.regions import REGIONS, SHORT_REGION_PATTERN
from corpus.pii.formats.shapes import digits_of, draw_digits, refill
from corpus.pii.formats.tel import BARE_END, BARE_START, END, START
from corpus.pii.types import BY_LABEL, CERTAIN, CLEAR, LIKELY, Format, PiiType, Scope, words

# --- PASSPORT

_PASSPORT_START, _PASSPORT_END = r"(?<![0-9A-Za-z])(?<![0-9A-Za-z]-)", "(?![0-9A-Za-z]|-[0-9A-Za-z])"
PASSPORT_NEW = re.compile(rf"{_PASSPORT_START}[MSRODmsrod][0-9]{{3}}[A-Za-z][0-9]{{4}}{_PASSPORT_END}")
PASSPORT_OLD = re.compile(rf"{_PASSPORT_START}[MSRODmsrod][0-9]{{8}}{_PASSPORT_END}")
_DATED = re.compile("[A-Za-z]20[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])")  # 문서 D20240101
# foreign ones, parted ones, and G, the code of official passports, which also starts many product codes
PASSPORT_ODD = re.compile(
    rf"{_PASSPORT_START}[A-Za-z](?:[ \-]|[A-Za-z]?)"
    rf"(?:[0-9]{{7,8}}|[0-9]{{4}} [0-9]{{4}}|[0-9]{{3}}[A-Za-z][0-9]{{4}}){_PASSPORT_END}"
)
_PASSPORT_SCOPE = Scope(
    "0-9",
    "(?:(?<=[A-Za-z][0-9])|(?<=[MSRODGmsrodg][ \\-][0-9]))[0-9]{2}[0-9A-Za-z](?:[0-9]{3}| [0-9]{4})",
    before=4,
    after=8,
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


def _fake_licence(rng: Random, value: str) -> str:
    region = rng.choice(words("11 12 13 14 15 16 17 18 21 22 23 24 25 26 28"))
    name = "" if value[0].isdigit() else rng.choice(sorted(REGIONS))
    lead = region if len(digits_of(value)) == 12 else ""
    return name + refill(value[len(name) :], lead + draw_digits(rng, 10))


# --- HEALTH

HEALTH_NUMBER = re.compile(rf"{START}[1-9](?:(?: ?[-_~.] ?| )?[0-9]){{10,11}}{BARE_END}(?! ?원)")
HEALTH_HYPHEN = re.compile(rf"{START}[1-9]-(?!20[0-9]{{2}})[0-9]{{10}}{BARE_END}(?! ?원)")


# --- rows

PASSPORT = PiiType(
    "PASSPORT",
    (
        Format(PASSPORT_NEW, CLEAR, scope=_PASSPORT_SCOPE),
        Format(PASSPORT_OLD, LIKELY, lambda m, label: label == "PASSPORT" or not _DATED.match(m[0]), _PASSPORT_SCOPE),
        Format(PASSPORT_ODD, BY_LABEL, scope=_PASSPORT_SCOPE),
    ),
    _fake_passport,
    "M000A0000",
)
DRIVER = PiiType(
    "DRIVER",
    (
        Format(LICENCE, CLEAR, digits=12, leads="12"),
        Format(LICENCE_ODD, BY_LABEL, digits=12, leads="12"),
        Format(LICENCE_BARE, BY_LABEL, digits=12, leads="12"),
        Format(LICENCE_OLD, CERTAIN, digits=10, leads=""),
    ),
    _fake_licence,
    "11-00-000000-00",
)
HEALTH = PiiType(
    "HEALTH",
    (
        Format(HEALTH_HYPHEN, LIKELY, digits=11, leads="123456789"),
        Format(HEALTH_NUMBER, BY_LABEL, digits=11, leads="123456789"),
    ),
    lambda rng, value: refill(value, rng.choice("12345678") + draw_digits(rng, 10)),
    "1-0000000000",
)
