"""Noise filter of paper section 2.3: named rules take the noise out and leave the sentence; a few sentences go whole.

One pass in table order, so that noise inside noise, as in (( )), may leave its shell. Text stays NFC; NFKC would tear
Korean jamo such as ㅋㅋ apart. Sources full of code or mark-up switch rules off.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache

from corpus.documents.errors import BadInput
from corpus.noise.markup import LAYOUT_RULES, MARKUP_RULES
from corpus.noise.news import NEWS_RULES
from corpus.noise.rule import LINE_HEAD, ODD_CHARACTER, NoiseRule

NOISE_RULES = MARKUP_RULES + NEWS_RULES + LAYOUT_RULES


@lru_cache
def rules_except(names: Sequence[str]) -> tuple[NoiseRule, ...]:
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
