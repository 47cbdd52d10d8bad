"""The noise filter of paper section 2.3: named rules remove noise and keep the sentence. The table is ``rules.yaml``.

Rules run once, in table order, so nested noise such as (( )) may leave its outer part. Text stays in NFC; NFKC would
change Korean jamo such as ㅋㅋ. Zero-width characters are removed, except those that join emoji. Letters of old Hangul
(ᄒᆞᆫ) stay unchanged. For sources with much code or markup, switch rules off (``corpus.noise_rules_off``).
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html.entities import html5
from pathlib import Path
from typing import Any

import yaml

from corpus.documents.errors import BadInput

MAX_TAGS = 2  # more hashtags in a row are no part of a sentence


@dataclass(frozen=True, slots=True)
class NoiseRule:
    """A linear-time pattern and its replacement, with an example."""

    name: str
    before: str
    after: str
    pattern: re.Pattern[str]
    cues: tuple[tuple[str, ...], ...] = ()  # one string of each group must occur; a fast check before the pattern runs
    replacement: str | Callable[[re.Match[str]], str] = ""
    by_line: bool = False  # apply the rule to each line separately
    at_line_start: bool = False  # the pattern starts with the previous line end, which is kept; needs ``LINE_HEAD``
    odd: bool = False  # needs an ``ODD_CHARACTER`` in the text

    def has_cues(self, text: str) -> bool:
        for group in self.cues:
            for cue in group:
                if cue in text:
                    break
            else:
                return False
        return True

    def apply(self, text: str) -> tuple[str, int]:
        """The changed text and the number of changes."""
        if not self.has_cues(text):
            return text, 0
        if self.at_line_start:
            after, times = self.pattern.subn("\n", "\n" + text)
            return (after[1:], times) if times else (text, 0)
        if not self.by_line:
            return self.pattern.subn(self.replacement, text)
        lines = text.split("\n")
        total = 0
        for n, line in enumerate(lines):
            if self.has_cues(line):
                lines[n], times = self.pattern.subn(self.replacement, line)
                total += times
        return ("\n".join(lines), total) if total else (text, 0)


def _entity(match: re.Match[str]) -> str:
    """The character of a numeric or known entity; ``&s2;`` of a program stays unchanged."""
    name = match[1]
    return html.unescape(f"&{name}") if name.startswith("#") or name in html5 else match[0]


REPLACEMENTS: dict[str, Callable[[re.Match[str]], str]] = {
    "html_entity": _entity,
    "hashtag_sign": lambda m: "" if m[0].count("#") > MAX_TAGS else re.sub(r"(?<=\w)#", " ", m[0]).replace("#", ""),
    "bracket_gap": lambda match: match[0].rstrip(", "),
    "wiki_placeholder": lambda match: "" if match[1] else "[수식]" if match[0][0] == "f" else "[코드]",
}


def _fill(text: str, fragments: dict[str, str]) -> str:
    """The text on one line, with the fragments for their names in braces."""
    return re.sub(r"\{([A-Z_]+)\}", lambda match: fragments[match[1]], text.replace("\n", ""))


def _make_rule(row: dict[str, Any]) -> NoiseRule:
    pattern = "|".join(_fill(text, FRAGMENTS) for text in row.pop("patterns", None) or [row.pop("pattern")])
    if row.get("at_line_start"):
        pattern = rf"(?m)\n *+{pattern}"
    cues = tuple(map(tuple, row.pop("cues", ())))
    replacement = row.pop("replacement", REPLACEMENTS.get(row["name"], ""))
    return NoiseRule(pattern=re.compile(pattern), cues=cues, replacement=replacement, **row)


_TABLE = yaml.safe_load((Path(__file__).parent / "rules.yaml").read_text("utf-8"))
FRAGMENTS: dict[str, str] = {}
for _name, _text in _TABLE["fragments"].items():
    FRAGMENTS[_name] = _fill(_text, FRAGMENTS)
ODD_CHARACTER, LINE_HEAD = re.compile(FRAGMENTS["ODD_CHARACTER"]), re.compile(FRAGMENTS["LINE_HEAD"])
_RULES = {row["name"]: _make_rule(row) for row in _TABLE["rules"]}
HASHTAG_SIGN = _RULES.pop("hashtag_sign")  # instead of the rule "hashtag" with corpus.keep_hashtag_words
NOISE_RULES = tuple(_RULES.values())


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
