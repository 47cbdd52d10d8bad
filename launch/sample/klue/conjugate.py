"""Korean endings on stems, with the morphemes they are made of.

Only what the sentences of the sample need: regular stems, stems in ㄹ, vowel harmony and the usual contractions
(보 + 았 → 봤, 그리 + 었 → 그렸), and 하다, which is written 하 + 였. Irregular stems are simply not in the lexicon.
"""

from __future__ import annotations

from typing import NamedTuple

VOWELS = "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ"
FINAL_N, FINAL_L, FINAL_SS = 4, 8, 20  # positions of ㄴ, ㄹ, ㅆ among the 28 finals
HANGUL_START, FINALS = 0xAC00, 28
CONTRACTED = {"ㅏ": "ㅏ", "ㅓ": "ㅓ", "ㅐ": "ㅐ", "ㅔ": "ㅔ", "ㅕ": "ㅕ", "ㅗ": "ㅘ", "ㅜ": "ㅝ", "ㅣ": "ㅕ"}


class Ending(NamedTuple):
    """Morphemes of an ending and their Sejong tags, e.g. ("었", "다", ".") and ("EP", "EF", "SF")."""

    morphemes: tuple[str, ...]
    tags: tuple[str, ...]


PAST = Ending(("었", "다", "."), ("EP", "EF", "SF"))
DECLARED = Ending(("다", "."), ("EF", "SF"))
PAST_AND = Ending(("었", "고"), ("EP", "EC"))
PAST_BUT = Ending(("었", "지만"), ("EP", "EC"))
PAST_QUOTED = Ending(("었", "다고"), ("EP", "EC"))
AND = Ending(("고",), ("EC",))
THEN = Ending(("어",), ("EC",))
NOMINAL = Ending(("기",), ("ETN",))
ADNOMINAL = Ending(("ㄴ",), ("ETM",))  # of a verb: past; of an adjective: present
ADNOMINAL_FUTURE = Ending(("ㄹ",), ("ETM",))


def _final(syllable: str) -> int:
    return (ord(syllable) - HANGUL_START) % FINALS


def has_final(syllable: str) -> bool:
    """Whether a Hangul syllable ends in a consonant."""
    return _final(syllable) > 0


def _vowel(syllable: str) -> str:
    return VOWELS[(ord(syllable) - HANGUL_START) // FINALS % len(VOWELS)]


def _with_final(syllable: str, final: int) -> str:
    return chr(ord(syllable) - _final(syllable) + final)


def _with_vowel(syllable: str, vowel: str) -> str:
    code = ord(syllable) - HANGUL_START
    initial = code // (FINALS * len(VOWELS))
    return chr(HANGUL_START + (initial * len(VOWELS) + VOWELS.index(vowel)) * FINALS)


def _harmonize(stem: str) -> tuple[str, str]:
    """Stem with -아/-어 as one string, and the morpheme it is (아, 어 or 여)."""
    last = stem[-1]
    if last == "하":
        return stem[:-1] + "해", "여"
    morpheme = "아" if _vowel(last) in "ㅏㅗ" else "어"
    if _final(last) or last == "되" or _vowel(last) not in CONTRACTED:
        return stem + morpheme, morpheme
    return stem[:-1] + _with_vowel(last, CONTRACTED[_vowel(last)]), morpheme


def conjugate(stem: str, ending: Ending) -> tuple[str, tuple[str, ...]]:
    """Written form of stem + ending, and the ending's morphemes as this stem takes them.

    ``conjugate("맡", PAST)`` is ``("맡았다.", ("았", "다", "."))``.
    """
    first, *rest = ending.morphemes
    tail, final = "".join(rest), _final(stem[-1])
    if first in ("었", "어"):
        form, morpheme = _harmonize(stem)
        if first == "어":
            return form + tail, (morpheme, *rest)
        past = {"아": "았", "어": "었", "여": "였"}[morpheme]
        return form[:-1] + _with_final(form[-1], FINAL_SS) + tail, (past, *rest)
    if first in ("ㄴ", "ㄹ"):
        if final in (0, FINAL_L):
            sound = FINAL_N if first == "ㄴ" else FINAL_L
            return stem[:-1] + _with_final(stem[-1], sound) + tail, (first, *rest)
        full = "은" if first == "ㄴ" else "을"
        return stem + full + tail, (full, *rest)
    return stem + first + tail, ending.morphemes
