"""A noise rule: one row of a table, with an example before and after that is also its test."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

# every character that line_separator, bad_character or odd_blank changes, so one search is enough
ODD_CHARACTER = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\xa0\u00ad\u061c\u115f\u1160\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000"
    "\u3164\ue000-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff]"
)
# the start of every match of the rules with at_line_start, so one search is enough
LINE_HEAD = re.compile(
    r"\n *+(?:[▲△▼◀]|[\[(<【]? ?(?:기사|최초|최종|입력|수정|등록|승인|작성|송고|업데이트|게재|발행"
    r"|댓글|좋아요|공유|스크랩|인쇄|프린트|글자|페이스북|트위터|카카오|URL|링크|북마크|본문|앵커|리포트"
    r"|많이 본|네이버에서|관련"
    r"|사업자|통신판매|대표이사|편집인|기자))"
)


@dataclass(frozen=True, slots=True)
class NoiseRule:
    """A linear-time pattern and its replacement, with an example.

    Attributes:
        cues: one string of each group must occur; a fast check before the pattern runs.
        by_line: apply the rule to each line separately.
        at_line_start: the pattern starts with the previous line end, which is kept; needs ``LINE_HEAD`` in the text.
        odd: needs an ``ODD_CHARACTER`` in the text.
    """

    name: str
    before: str
    after: str
    cues: tuple[tuple[str, ...], ...]
    pattern: re.Pattern[str]
    replacement: str | Callable[[re.Match[str]], str] = ""
    by_line: bool = False
    at_line_start: bool = False
    odd: bool = False

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


def line_rule(name: str, before: str, after: str, cues: tuple[tuple[str, ...], ...], *patterns: str) -> NoiseRule:
    return NoiseRule(name, before, after, cues, re.compile("|".join(patterns)), by_line=True)


def line_start_rule(name: str, before: str, after: str, pattern: str) -> NoiseRule:
    """A rule whose matches start at the start of a line."""
    return NoiseRule(name, before, after, (), re.compile(rf"\n *+{pattern}", re.M), at_line_start=True)
