"""A noise rule: one row of a table, with the pair of texts that says and tests what it does."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

# every character that line_separator, bad_character or odd_blank changes: one search settles all three
ODD_CHARACTER = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\xa0\u00ad\u061c\u115f\u1160\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000"
    "\u3164\ue000-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff]"
)
# how every match of a rule at_line_start begins: one search settles all of them
LINE_HEAD = re.compile(
    r"\n *+(?:[▲△▼◀]|[\[(<【]? ?(?:기사|최초|최종|입력|수정|등록|승인|작성|송고|업데이트|게재|발행"
    r"|댓글|좋아요|공유|스크랩|인쇄|프린트|글자|페이스북|트위터|카카오|URL|링크|북마크|본문|앵커|리포트"
    r"|많이 본|네이버에서|관련"
    r"|사업자|통신판매|대표이사|편집인|기자))"
)


@dataclass(frozen=True, slots=True)
class NoiseRule:
    """A pattern that runs in linear time and what stands in its place; ``before`` and ``after`` show what it does.

    Of each group of ``cues`` one must occur, a memory scan that spares the pattern. A rule ``by_line`` sees each line
    alone. The pattern of a rule ``at_line_start`` begins with the line end before it, which stays; it is tried only on
    text with a ``LINE_HEAD``, an ``odd`` rule on text with an ``ODD_CHARACTER``.
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
        """The text after the rule and how many places it matched."""
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
    """A rule that sees each line alone."""
    return NoiseRule(name, before, after, cues, re.compile("|".join(patterns)), by_line=True)


def line_start_rule(name: str, before: str, after: str, pattern: str) -> NoiseRule:
    """A rule whose matches begin with a line."""
    return NoiseRule(name, before, after, (), re.compile(rf"\n *+{pattern}", re.M), at_line_start=True)
