"""ACCOUNT, BRN and CARD: bank accounts, business registration numbers and payment cards.

Account numbers have no common form, so a bank or an account word must announce them. Business numbers and cards have
check digits. Replacements of both start with 9, which is not issued.
"""

from __future__ import annotations

import re
from random import Random

from corpus.pii.formats.shapes import digits_of, draw_digits, looks_typed, refill
from corpus.pii.formats.tel import BARE_END, BARE_START, END, START
from corpus.pii.types import BY_LABEL, CLEAR, LIKELY, WEAK, Format, PiiType

# --- ACCOUNT

_TEN_DIGITS = "(?=(?:[0-9][-._~/· ]{0,3}){10})"  # a date has fewer
ACCOUNT_GROUPS = re.compile(
    rf"{START}{_TEN_DIGITS}(?:[0-9]{{2,6}}(?P<sep>[-._~/·]| - | )[0-9]{{1,8}}(?:(?P=sep)[0-9]{{1,8}}){{1,3}}"
    rf"|[0-9]{{3,8}}-[0-9]{{2,8}}){END}"
)
ACCOUNT_BARE = re.compile(rf"{BARE_START}[0-9]{{10,14}}{BARE_END}")
# a telephone number as account number of Industrial Bank
ACCOUNT_PHONE = re.compile(
    rf"(?:(?<=기업)|(?<=기업.)|(?<=기업은행)|(?<=기업은행.)|(?<=계좌)|(?<=계좌.)|(?<=[Ii][Bb][Kk].))010[0-9]{{8}}{BARE_END}"
)
MIN_ACCOUNT_DIGITS, MAX_ACCOUNT_DIGITS = 10, 16
_GROUP = re.compile("[0-9]+")
_TIME = re.compile("20[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])(?:[01][0-9]|2[0-3])[0-5][0-9](?:[0-5][0-9])?")
_DAY = re.compile("(?:19|20)[0-9]{2}([-.])(?:0[1-9]|1[0-2])\\1(?:0[1-9]|[12][0-9]|3[01])\\1")
_AMOUNT = re.compile(r" ?(?:원(?!룸|장)|달러|명(?!의|단)|개(?!인)|건(?!강|물|설|축)|년|억|만|배(?!송))")


def _is_account(match: re.Match[str], label: str | None) -> bool:
    """10 to 16 digits that are not an amount of money or a sequence of years."""
    if match[0].count("-") < 2 and _AMOUNT.match(match.string, match.end()):
        return False
    groups = _GROUP.findall(match.group())
    if _TIME.fullmatch(match.group()) or _DAY.match(match.group()):
        return False
    if all(len(group) == 4 and group[:2] in ("19", "20") for group in groups):
        return False
    return MIN_ACCOUNT_DIGITS <= sum(map(len, groups)) <= MAX_ACCOUNT_DIGITS


# --- BRN

BUSINESS = re.compile(rf"{START}[0-9]{{3}}(?P<sep> ?- ?|\.)[0-9]{{2}}(?P=sep)[0-9]{{5}}{END}")
BUSINESS_ODD = re.compile(rf"{START}[0-9]{{3}}(?P<sep>[-._~/· ])[0-9]{{2}}(?P=sep)?[0-9]{{5}}{END}")
BUSINESS_BARE = re.compile(rf"{BARE_START}[0-9]{{10}}{BARE_END}")
_BUSINESS_WEIGHTS = (1, 3, 7, 1, 3, 7, 1, 3, 5)


def business_check_digit(first_nine: str) -> int:
    total = sum(weight * int(digit) for weight, digit in zip(_BUSINESS_WEIGHTS, first_nine, strict=True))
    return (10 - (total + int(first_nine[8]) * 5 // 10) % 10) % 10


def _is_business(match: re.Match[str], label: str | None) -> bool:
    """A valid check digit, or hyphens and a label."""
    digits = digits_of(match.group())
    is_bare = match.group() == digits
    if label == "BRN" and "-" in match.group():
        return True
    if digits[:3] < "101" or digits[3:5] == "00" or (is_bare and _AMOUNT.match(match.string, match.end())):
        return False
    if label != "BRN" and is_bare and looks_typed(digits):
        return False
    return business_check_digit(digits[:9]) == int(digits[9])


def _fake_business(rng: Random, value: str) -> str:
    nine = f"{rng.randrange(900, 1000)}{rng.randrange(1, 100):02}{draw_digits(rng, 4)}"
    return refill(value, f"{nine}{business_check_digit(nine)}")


# --- CARD

CARD_SIXTEEN = re.compile(
    rf"{START}[2-69][0-9]{{3}}(?P<sep> ?- ?| {{1,2}}|[._~/·])[0-9]{{4}}(?P=sep)[0-9]{{4}}(?P=sep)[0-9]{{4}}{END}"
)
CARD_FIFTEEN = re.compile(rf"{START}3[47][0-9]{{2}}(?P<sep> ?- ?| |[._~/·])[0-9]{{6}}(?P=sep)[0-9]{{5}}{END}")
CARD_BARE = re.compile(rf"{BARE_START}(?:[2-69][0-9]{{15}}|3[47][0-9]{{13}}){BARE_END}")


def luhn_check_digit(without_last: str) -> int:
    """The check digit that completes a card number (ISO/IEC 7812-1)."""
    doubled = "0246813579"  # digit sum of twice the digit
    backwards = without_last[::-1]
    total = sum(int(doubled[int(digit)]) for digit in backwards[0::2]) + sum(map(int, backwards[1::2]))
    return -total % 10


def _is_card(match: re.Match[str], label: str | None) -> bool:
    """A valid check digit, or groups and a label; not four years (2002 2003 2004 2005)."""
    digits = digits_of(match.group())
    if label == "CARD" and match.group() != digits:
        return True
    if label != "CARD" and all(group[:2] in ("19", "20") for group in _GROUP.findall(match.group())):
        return False
    return luhn_check_digit(digits[:-1]) == int(digits[-1])


def _fake_card(rng: Random, value: str) -> str:
    count = len(digits_of(value))
    front = ("9999" if count == 16 else "3799") + draw_digits(rng, count - 5)
    return refill(value, f"{front}{luhn_check_digit(front)}")


# --- rows

ACCOUNT = PiiType(
    "ACCOUNT",
    (
        Format(ACCOUNT_GROUPS, BY_LABEL, _is_account, digits=10),
        Format(ACCOUNT_BARE, BY_LABEL, _is_account, digits=10),
        Format(ACCOUNT_PHONE, LIKELY, lambda match, label: label == "ACCOUNT", digits=11, leads="0"),
    ),
    # no unused account numbers are known, so the digits are random
    lambda rng, value: refill(value, draw_digits(rng, len(digits_of(value)))),
    "100-000-000000",
)
BRN = PiiType(
    "BRN",
    (
        Format(BUSINESS, CLEAR, _is_business, digits=10, has_checksum=True),
        Format(BUSINESS_ODD, BY_LABEL, _is_business, digits=10, has_checksum=True),
        Format(BUSINESS_BARE, WEAK, _is_business, digits=10, has_checksum=True),
    ),
    _fake_business,
    "999-99-99997",
)
CARD = PiiType(
    "CARD",
    (
        Format(CARD_SIXTEEN, CLEAR + 2, _is_card, digits=16, has_checksum=True),
        Format(CARD_FIFTEEN, CLEAR + 2, _is_card, digits=15, has_checksum=True),
        Format(CARD_BARE, LIKELY, _is_card, digits=15, has_checksum=True),
    ),
    _fake_card,
    "9999-9999-9999-9995",
)
