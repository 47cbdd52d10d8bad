"""Check digits and calendar dates inside identification numbers.

Resident and foreigner registration numbers issued since October 2020 end in random digits, so their old check digit
is only used to draw replacements, never to reject a match. Business numbers and cards must pass.
"""

from __future__ import annotations

from calendar import monthrange
from itertools import pairwise

_RESIDENT_WEIGHTS = (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)
_BUSINESS_WEIGHTS = (1, 3, 7, 1, 3, 7, 1, 3, 5)


def resident_check_digit(first_twelve: str, base: int = 11) -> int:
    """The pre-2020 check digit; ``base`` is 11 for residents, 13 for foreigners."""
    total = sum(weight * int(digit) for weight, digit in zip(_RESIDENT_WEIGHTS, first_twelve, strict=True))
    return (base - total % 11) % 10


def business_check_digit(first_nine: str) -> int:
    """The check digit of a business registration number."""
    total = sum(weight * int(digit) for weight, digit in zip(_BUSINESS_WEIGHTS, first_nine, strict=True))
    return (10 - (total + int(first_nine[8]) * 5 // 10) % 10) % 10


def luhn_check_digit(without_last: str) -> int:
    """The check digit that completes a card number (ISO/IEC 7812-1)."""
    doubled = "0246813579"  # digit sum of twice the digit
    backwards = without_last[::-1]
    total = sum(int(doubled[int(digit)]) for digit in backwards[0::2]) + sum(map(int, backwards[1::2]))
    return -total % 10


def is_birth_date(yymmdd: str, century_digit: str) -> bool:
    """Whether the front of a registration number is a day of the calendar; digits 3, 4, 7, 8 mean 20yy."""
    year = (2000 if century_digit in "3478" else 1900) + int(yymmdd[:2])
    month, day = int(yymmdd[2:4]), int(yymmdd[4:])
    return 1 <= month <= 12 and 1 <= day <= monthrange(year, month)[1]


def looks_typed(digits: str) -> bool:
    """Digits that fingers made up: runs such as 112233445555 and 1010101010, or three different digits and fewer."""
    steps = {(int(right) - int(left)) % 10 for left, right in pairwise(digits)}
    rising = list(digits.rstrip("0")) == sorted(digits.rstrip("0"))
    return steps <= {0, 1, 9} or rising or len(set(digits)) <= 3
