"""Noise filter of paper section 2.3: named rules take the noise out and leave the sentence; a few sentences go whole.

One pass in table order, so that noise inside noise, as in (( )), may leave its shell. Text stays NFC; NFKC would tear
Korean jamo such as ㅋㅋ apart. Sources full of code or mark-up switch rules off.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from corpus.documents.errors import BadInput
from corpus.noise.markup import LAYOUT_RULES, MARKUP_RULES
from corpus.noise.news import NEWS_RULES
from corpus.noise.rule import LINE_HEAD, ODD_CHARACTER, NoiseRule

NOISE_RULES = MARKUP_RULES + NEWS_RULES + LAYOUT_RULES


@lru_cache
def rules_without(names: Sequence[str]) -> tuple[NoiseRule, ...]:
    """``NOISE_RULES`` but those of ``names`` (a hashable sequence); ``BadInput`` where a name is no rule's."""
    known = [rule.name for rule in NOISE_RULES]
    for name in names:
        if name not in known:
            raise BadInput(f'no noise rule is called "{name}"; the rules are {", ".join(known)}')
    return tuple(rule for rule in NOISE_RULES if rule.name not in names)


def remove_noise(
    text: str,
    changed: Counter[str],
    observe: Callable[[str, str, str], None] | None = None,
    rules: Sequence[NoiseRule] = NOISE_RULES,
) -> str:
    """The text without noise, NFC, line ends as ``\\n``, no blank lines.

    Args:
        changed: gains, under the name of each rule that changed the text, the number of places.
        observe: called as ``observe(rule_name, before, after)`` for each of them, with the whole text.
    """
    text = unicodedata.normalize("NFC", text)
    is_odd: bool | None = None
    headed, has_head = "", False  # the text last searched for heads of lines
    for rule in rules:
        if rule.odd and is_odd is None:
            is_odd = ODD_CHARACTER.search(text) is not None
        if rule.at_line_start and headed is not text:
            headed, has_head = text, LINE_HEAD.search("\n" + text) is not None
        if (rule.odd and not is_odd) or (rule.at_line_start and not has_head):
            continue
        after, times = rule.apply(text)
        if times and after != text:
            changed[rule.name] += times
            if observe:
                observe(rule.name, text, after)
            text = after
    return unicodedata.normalize("NFC", text.strip())


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
