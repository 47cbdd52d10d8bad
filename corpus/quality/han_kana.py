"""The Han and Kana rule: drop sentences with more than 10 such characters (paper section 2.3).

By default, characters in glosses such as 대한민국(大韓民國) do not count when the sentence is Korean without them. The
paper's rule counts them (``corpus.count_glosses: true``). Of 293,767 Wikipedia sentences, the paper's rule drops 2,522,
nearly all of them good Korean with names in Han characters; the default drops 150.
"""

from __future__ import annotations

import re

MAX_HAN_KANA = 10
HAN_OR_KANA = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
HANGUL = re.compile("[가-힣]")
# brackets right after a word, number, quotation or bracket; they may contain one more pair of brackets
OPENING, CLOSING = r"(（\[〔", r")）\]〕"
BEFORE = rf"[가-힣0-9A-Za-z’”」』》〉>\"'!?.…{CLOSING}]"
INNER = rf"[^{OPENING}{CLOSING}\n]"
GLOSS = re.compile(
    rf"[{OPENING}](?:(?<={BEFORE}.)|(?<={BEFORE} .))"
    rf"(?:{INNER}{{1,60}}+|[{OPENING}]{INNER}{{0,60}}[{CLOSING}]){{1,6}}+[{CLOSING}]"
)


def has_many_han_or_kana(text: str) -> bool:
    """Whether a text has more than ``MAX_HAN_KANA`` characters in U+3040-30FF, U+3400-9FFF or U+F900-FAFF."""
    return len(text) > MAX_HAN_KANA and len(HAN_OR_KANA.findall(text)) > MAX_HAN_KANA


def has_too_many_han_or_kana(sentence: str, count_glosses: bool = False) -> bool:
    """Whether the rule drops a sentence.

    With ``count_glosses=False``, glosses are exempt unless they have more Han and Kana characters than the rest of the
    sentence has Hangul.
    """
    if count_glosses or not has_many_han_or_kana(sentence):
        return has_many_han_or_kana(sentence)
    outside = GLOSS.sub("()", sentence)
    in_text = len(HAN_OR_KANA.findall(outside))
    in_glosses = len(HAN_OR_KANA.findall(sentence)) - in_text
    return in_text > MAX_HAN_KANA or in_glosses > len(HANGUL.findall(outside))
