"""Check digits of registration numbers and cards.

Resident and foreigner registration numbers issued since October 2020 end in random digits, so the old check digit is
used for replacements and against serial numbers only. Business numbers and cards must have a valid check digit.
"""

from __future__ import annotations

_RESIDENT_WEIGHTS = (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)
_BUSINESS_WEIGHTS = (1, 3, 7, 1, 3, 7, 1, 3, 5)


def resident_check_digit(first_twelve: str, base: int = 11) -> int:
    """The pre-2020 check digit; ``base`` is 11 for residents, 13 for foreigners."""
    total = sum(weight * int(digit) for weight, digit in zip(_RESIDENT_WEIGHTS, first_twelve, strict=True))
    return (base - total % 11) % 10


def business_check_digit(first_nine: str) -> int:
    total = sum(weight * int(digit) for weight, digit in zip(_BUSINESS_WEIGHTS, first_nine, strict=True))
    return (10 - (total + int(first_nine[8]) * 5 // 10) % 10) % 10


def luhn_check_digit(without_last: str) -> int:
    """The check digit that completes a card number (ISO/IEC 7812-1)."""
    doubled = "0246813579"  # digit sum of twice the digit
    backwards = without_last[::-1]
    total = sum(int(doubled[int(digit)]) for digit in backwards[0::2]) + sum(map(int, backwards[1::2]))
    return -total % 10
