"""Check digits against published example numbers."""

from __future__ import annotations

import pytest

from corpus.pii.formats.shapes import (
    business_check_digit,
    is_birth_date,
    looks_typed,
    luhn_check_digit,
    resident_check_digit,
)


@pytest.mark.parametrize("number", ["4111111111111111", "378282246310005", "79927398713"])
def test_luhn_agrees_with_published_test_cards(number: str) -> None:
    assert luhn_check_digit(number[:-1]) == int(number[-1])


@pytest.mark.parametrize("number", ["1048656659", "1048213138", "1234567891"])
def test_business_numbers_that_are_known_to_be_right(number: str) -> None:
    assert business_check_digit(number[:-1]) == int(number[-1])


@pytest.mark.parametrize(("number", "base"), [("6004082764759", 11), ("9111245678906", 13)])
def test_old_registration_numbers_that_are_known_to_be_right(number: str, base: int) -> None:
    assert resident_check_digit(number[:-1], base) == int(number[-1])


def test_birth_dates_follow_the_calendar_of_their_century() -> None:
    assert is_birth_date("000229", "3")  # 2000 was a leap year, 1900 was not
    assert not is_birth_date("000229", "1")
    assert not is_birth_date("850431", "1")
    assert not is_birth_date("851301", "1")


@pytest.mark.parametrize(
    "digits", ["112233445555", "4455665544332", "1234543210", "9876543210", "8901234567", "1010101010"]
)
def test_digits_beside_each_other_on_the_keyboard_look_typed(digits: str) -> None:
    assert looks_typed(digits)


@pytest.mark.parametrize(("digits", "is_typed"), [("1246900", True), ("1246090", False), ("124690", True)])
def test_rising_digits_before_zeros_look_typed(digits: str, is_typed: bool) -> None:
    assert looks_typed(digits) is is_typed


@pytest.mark.parametrize(("digits", "is_typed"), [("4741741", True), ("4741742", False), ("3820176", False)])
def test_three_different_digits_look_typed_and_four_do_not(digits: str, is_typed: bool) -> None:
    assert looks_typed(digits) is is_typed
