"""Particles agree with Hangul, digits, abbreviations, brackets, quotes and units."""

# ruff: noqa: E501 - a Hangul syllable counts as two columns
from __future__ import annotations

import unicodedata
from random import Random

import pytest

from launch.sample.grammar import parse, render
from launch.sample.josa import attach, particle

CASES = [
    ("가온시", "은", "는"), ("한빛", "은", "은"), ("사람", "이", "이"), ("친구", "이", "가"), ("책", "을", "을"), ("바다", "을", "를"),
    ("물", "과", "과"), ("나무", "과", "와"), ("서울", "으로", "로"), ("부산", "으로", "으로"), ("가온시", "으로", "로"), ("길", "으로서", "로서"),
    ("학생", "이다", "이다"), ("의사", "이다", "다"), ("한빛", "이라고", "이라고"), ("가온", "아", "아"), ("미소", "아", "야"),
    ("의사", "이었", "였"), ("학생", "이었", "이었"), ("가온시", "이에요", "예요"), ("가온시", "와", "와"), ("가온시", "를", "를"),
    # digits are read 영 일 이 삼 사 오 육 칠 팔 구; 10, 100, 1000 end in a consonant
    ("0", "이", "이"), ("1", "으로", "로"), ("2", "은", "는"), ("3", "은", "은"), ("4", "을", "를"), ("5", "과", "와"), ("6", "으로", "으로"),
    ("7", "으로", "로"), ("8", "이", "이"), ("9", "이", "가"), ("10", "은", "은"), ("2000", "을", "을"), ("010-0123-4567", "으로", "로"),
    # letters by name: 엘, 엠, 엔, 알; the rest end in a vowel
    ("KBT", "은", "는"), ("FC", "이", "가"), ("HTML", "으로", "로"), ("DM", "으로", "으로"), ("VPN", "을", "을"), ("EV3", "은", "은"),
    ("a@example.net", "으로", "으로"), ("a@example.org", "으로", "로"),
    # brackets are skipped, quotes looked through
    ("가온전자(GE)", "은", "는"), ("새벌(新)", "은", "은"), ("‘첫눈’", "을", "을"), ("“바다”", "을", "를"), ("『느린 우체국』", "이", "이"),
    ("50%", "을", "를"), ("12km", "을", "를"), ("3kg", "을", "을"), ("5 kg", "으로", "으로"), ("20ha", "은", "는"),
]  # fmt: skip


@pytest.mark.parametrize(("word", "josa", "expected"), CASES)
def test_particle_agrees_with_the_last_sound(word: str, josa: str, expected: str) -> None:
    assert particle(word, josa) == expected


def test_hangul_agrees_with_the_decomposed_syllable() -> None:
    for code in range(0xAC00, 0xD7A4, 7):
        syllable = chr(code)
        has_final = len(unicodedata.normalize("NFD", syllable)) == 3
        assert attach(syllable, "은") == syllable + ("은" if has_final else "는")


def test_other_endings_stay_as_they_are() -> None:
    assert attach("가온시", "에서") == "가온시에서"


def test_template_puts_values_choices_and_particles() -> None:
    slots = {"person": "김도현", "city": "가온시"}
    text = render("{person:은} [아주 |]오래 {city}에서 살았고 ‘{city}’{:을} 떠났다.", slots, Random(1))
    assert text in (
        "김도현은 아주 오래 가온시에서 살았고 ‘가온시’를 떠났다.",
        "김도현은 오래 가온시에서 살았고 ‘가온시’를 떠났다.",
    )


@pytest.mark.parametrize("template", ["[가|나", "가|나", "가]나", "{가}", "가}나"])
def test_broken_template_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match=r"choice|brace|bracket"):
        parse(template)


def test_missing_value_is_refused() -> None:
    with pytest.raises(KeyError):
        render("{person:은} 갔다.", {}, Random(1))
