"""Particles (조사) that agree with the word before them: 가온시는, 한빛은, 3이, 7로, KBT와, 50%를.

A particle looks at the last sound: a final consonant or not, and ㄹ apart for (으)로. Digits are read as Sino-Korean
numbers (2 이, 10 십, 1000만 만), Latin abbreviations letter by letter (L 엘, M 엠), units and signs by their usual
reading. Closing quotes are looked through; a bracket with its content is skipped, as the word before it decides.
"""

from __future__ import annotations

import re

PAIRS = {  # particle after a final consonant, after a vowel
    "은": ("은", "는"),
    "이": ("이", "가"),
    "을": ("을", "를"),
    "과": ("과", "와"),
    "아": ("아", "야"),
    "이나": ("이나", "나"),
    "이랑": ("이랑", "랑"),
    "이며": ("이며", "며"),
    "이고": ("이고", "고"),
    "이다": ("이다", "다"),
    "이라": ("이라", "라"),
    "이라고": ("이라고", "라고"),
    "이라는": ("이라는", "라는"),
    "이라면": ("이라면", "라면"),
    "이란": ("이란", "란"),
    "이었": ("이었", "였"),
    "이든": ("이든", "든"),
    "이지만": ("이지만", "지만"),
    "이자": ("이자", "자"),
    "이던": ("이던", "던"),
    "이야": ("이야", "야"),
    "이죠": ("이죠", "죠"),
    "이에요": ("이에요", "예요"),
    "이어": ("이어", "여"),
    "으로": ("으로", "로"),
    "으로서": ("으로서", "로서"),
    "으로써": ("으로써", "로써"),
    "으로부터": ("으로부터", "로부터"),
    "으로는": ("으로는", "로는"),
    "으로도": ("으로도", "로도"),
}
KEY = {pair[1]: key for key, pair in reversed(PAIRS.items())} | {key: key for key in PAIRS}  # 는 asks as 은 does
NO_FINAL, FINAL, FINAL_L = 0, 1, 2  # FINAL_L: ends in ㄹ

# 영 (and 십, 백, 천, 만 for longer numbers), 일, 이, 삼 …
DIGITS = dict(zip("0123456789", (FINAL, FINAL_L, 0, FINAL, 0, 0, FINAL, FINAL_L, FINAL_L, 0), strict=True))
LETTERS = {"L": FINAL_L, "R": FINAL_L, "M": FINAL, "N": FINAL}  # 엘, 알, 엠, 엔; the others end in a vowel
UNITS = {"km": NO_FINAL, "cm": NO_FINAL, "m": NO_FINAL, "kg": FINAL, "g": FINAL, "t": FINAL, "ha": NO_FINAL}
WORDS = {"com": FINAL, "net": FINAL, "map": FINAL, "about": FINAL, "log": NO_FINAL}  # read as words
SIGNS = {"%": NO_FINAL, "㎞": NO_FINAL, "㎡": NO_FINAL, "℃": NO_FINAL, "+": NO_FINAL, "&": NO_FINAL}
QUOTES = "\"'”’」』》〉>…!?.,~ "
BRACKET = re.compile(r"(?<!\s)\s*+[(\[（][^()\[\]（）]*[)\]）]\s*$")
LATIN_WORD = re.compile(r"(?<![A-Za-z])[A-Za-z]++$")
UNIT = re.compile(r"(?<=\d)\s?(km|cm|kg|ha|m|g|t)$")


def last_sound(word: str) -> int:
    """How a word ends when read aloud: NO_FINAL, FINAL or FINAL_L. Unknown characters count as a vowel."""
    text = word
    while (shorter := BRACKET.sub("", text).rstrip(QUOTES)) != text and shorter:
        text = shorter
    if unit := UNIT.search(text):
        return UNITS[unit[1]]
    if (word_end := LATIN_WORD.search(text)) and word_end[0] in WORDS:
        return WORDS[word_end[0]]
    last = text[-1:]
    if "가" <= last <= "힣":
        final = (ord(last) - 0xAC00) % 28
        return FINAL_L if final == 8 else FINAL if final else NO_FINAL
    if last in DIGITS:
        return DIGITS[last]
    return SIGNS.get(last, LETTERS.get(last.upper(), NO_FINAL))


def particle(word: str, josa: str) -> str:
    """The form of ``josa`` after ``word``: ``particle("서울", "으로") == "로"``. Other endings come back unchanged."""
    key = KEY.get(josa)
    if key is None:
        return josa
    sound = last_sound(word)
    after_consonant = sound == FINAL or (sound == FINAL_L and not key.startswith("으로"))
    return PAIRS[key][0 if after_consonant else 1]


def attach(word: str, josa: str) -> str:
    """``word`` with the right particle: ``attach("가온시", "은") == "가온시는"``."""
    return word + particle(word, josa)
