"""Rejoin the lines of hard-wrapped text, because the sentence splitter treats every line end as a boundary.

A program that wraps at width W ends a line where the next word would not fit. In wrapped text, therefore, nearly every
line that does not end a sentence is full (its length plus the next word exceeds W, the longest line), and sentences end
inside lines more often than at line ends. Poems, lists, tables, chats and code have neither property. The decision is
per document, so single headings do not matter; in doubt, text stays unchanged.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise
from typing import NamedTuple

WIDTHS = range(15, 121)
MIN_FULL_LINES = 5
FULL_SHARE = 0.85  # minimum share of full lines among the lines that do not end a sentence
INNER_SHARE = 0.1  # minimum number of sentences that end inside a line, per full line
LONGER_SHARE = 0.03  # share of lines that may be longer than the width: tables, addresses
EXACT_SHARE = 0.8  # share of full lines with exactly the width, if words are split too
FINAL = re.compile(r"""[.!?…。:;][)\]"'”’」』》〉>]{0,3}$""")
INNER = re.compile(r"""[다요죠까음함임됨]\.[)"'”’」』]? ?(?=[^\s.])|[?!] (?=\S)""")
ITEM = re.compile(r"(?:[-*•·▪■□◆◇○●▶▷※#|+>]|\(?(?:\d{1,3}|[가-하a-zA-Zㄱ-ㅎ])[.)]|[①-⑳]|제\d+[조장절]|[|{}<\[])")
CODE = re.compile(r"[;{}]$|^(?:import|def|class|return|if|for|while|#include|//|/\*)\b")


class Wrapping(NamedTuple):
    """``width`` in characters or terminal columns (two per syllable); ``cuts_words``: lines are split inside words."""

    width: int
    in_columns: bool
    cuts_words: bool


def rejoin_lines(text: str) -> tuple[str, int]:
    """The text with rejoined lines, and the number of removed line ends."""
    if text.count("\n") < MIN_FULL_LINES or len(text) > WIDTHS.stop * (text.count("\n") + 1):
        return text, 0
    lines = text.split("\n")
    wrapping = find_wrapping(lines)
    if not wrapping:
        return text, 0
    joined, ends = [lines[0]], 0
    for line, following in pairwise(lines):
        if _continues(line, following) and _is_full(line, following, wrapping):
            exact = wrapping.cuts_words and _size(line, wrapping.in_columns) >= wrapping.width
            joined.append(("" if exact else " ") + following)
            ends += 1
        else:
            joined.append("\n" + following)
    return "".join(joined), ends


def find_wrapping(lines: list[str]) -> Wrapping | None:
    """How the lines of a document were wrapped; None if they were not."""
    longest = sorted(map(len, lines))
    if 2 * longest[len(lines) // 3] < longest[len(lines) - 1 - int(LONGER_SHARE * len(lines))]:
        return None  # line lengths vary too much; a fast check
    return _wrapped_at(lines, in_columns=False) or _wrapped_at(lines, in_columns=True)


def _wrapped_at(lines: list[str], *, in_columns: bool) -> Wrapping | None:
    sizes = [_size(line, in_columns) for line in lines]
    width = sorted(sizes)[len(sizes) - 1 - int(LONGER_SHARE * len(sizes))]
    if width not in WIDTHS:
        return None
    wrapping = Wrapping(width, in_columns, False)
    open_lines = [n for n in range(len(lines) - 1) if sizes[n] <= width and not FINAL.search(lines[n])]
    full = [n for n in open_lines if _is_full(lines[n], lines[n + 1], wrapping)]
    if len(full) < max(MIN_FULL_LINES, FULL_SHARE * len(open_lines)):
        return None
    inner = sum(len(INNER.findall(line)) for line in lines)
    closed = len(lines) - len(open_lines) - 1
    if inner < max(INNER_SHARE * len(full), min(closed, len(full))):
        return None
    if 2 * sum(1 for n in full if _continues(lines[n], lines[n + 1])) < len(lines):
        return None
    exact = sum(1 for n in full if sizes[n] >= width - 1)
    return wrapping._replace(cuts_words=exact >= EXACT_SHARE * len(full))


def _continues(line: str, following: str) -> bool:
    return not (FINAL.search(line) or ITEM.match(following) or CODE.search(line) or CODE.search(following))


def _is_full(line: str, following: str, wrapping: Wrapping) -> bool:
    word = following.split(" ", 1)[0]
    return _size(line, wrapping.in_columns) + 1 + _size(word, wrapping.in_columns) > wrapping.width


def _size(text: str, in_columns: bool) -> int:
    if not in_columns:
        return len(text)
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
