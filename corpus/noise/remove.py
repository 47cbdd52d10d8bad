"""The noise filter of paper section 2.3: named rules remove noise and keep the sentence.

Rules run once, in table order, so nested noise such as (( )) may leave its outer part. Text stays in NFC; NFKC would
change Korean jamo such as ㅋㅋ. For sources with much code or markup, switch rules off (``corpus.noise_rules_off``).
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache

from corpus.documents.errors import BadInput
from corpus.noise.rules import HASHTAG_SIGN, LINE_HEAD, NOISE_RULES, ODD_CHARACTER, NoiseRule


@lru_cache
def rules_except(names: Sequence[str], keep_hashtag_words: bool = False) -> tuple[NoiseRule, ...]:
    """``NOISE_RULES`` without the rules in ``names``, the words of hashtags kept or not; ``BadInput`` for an unknown
    name."""
    known = [rule.name for rule in NOISE_RULES]
    for name in names:
        if name not in known:
            raise BadInput(f'corpus.noise_rules_off: no noise rule "{name}"; the rules are {", ".join(known)}')
    rules = (rule for rule in NOISE_RULES if rule.name not in names)
    return tuple(HASHTAG_SIGN if keep_hashtag_words and rule.name == "hashtag" else rule for rule in rules)


def remove_noise(
    text: str,
    changed: Counter[str],
    observe: Callable[[str, str, str], None] | None = None,
    rules: Sequence[NoiseRule] = NOISE_RULES,
) -> str:
    """The text without noise, in NFC, with ``\\n`` line ends and without blank lines.

    Args:
        changed: the number of changes is added under the name of each rule.
        observe: called as ``observe(rule_name, before, after)`` with the whole text, for each rule that changed it.
    """
    text = unicodedata.normalize("NFC", text)
    is_odd: bool | None = None
    headed, has_head = "", False  # the text last searched for ``LINE_HEAD``
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
