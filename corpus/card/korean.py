"""Translate finished pages to Korean: replace each text between tags that is in ``korean.txt``.

Pages are rendered once, in English, so figures are the same in both languages. Text of the corpus that is equal to one
of our headings would be translated too.
"""

from __future__ import annotations

import html
import re
from functools import cache
from pathlib import Path

TAG = re.compile(r"(<[^<>]*>)")
BETWEEN_MARKS = re.compile(r"(^#+ |^> \*\*Warning:\*\* |^\| ?| \| | \|$)", re.MULTILINE)
KEPT = {"<style>": "style", "<pre>": "pre"}


def translate_html(page: str) -> str:
    """Translate an HTML page; style and preformatted text stay unchanged."""
    pieces = TAG.split(page.replace('<html lang="en">', '<html lang="ko">'))  # text and tags in turn
    kept_tag = ""
    for n, piece in enumerate(pieces[:-1]):
        if n % 2:
            kept_tag = "" if piece == f"</{kept_tag}>" else kept_tag or KEPT.get(piece, "")
        elif n and not kept_tag and (inner := piece.strip()):
            pieces[n] = piece.replace(inner, html.escape(translate(html.unescape(inner)), quote=False))
    return "".join(pieces)


def translate_markdown(page: str) -> str:
    """Translate Markdown: headings, one-line paragraphs and table cells."""
    lines = ("".join(map(translate, BETWEEN_MARKS.split(line))) for line in page.split("\n"))
    return "\n".join(lines).replace("\n> **Warning:** ", "\n> **주의:** ")


def translate(text: str) -> str:
    """The Korean translation of a text, or the text itself.

    >>> translate("Scores"), translate("8 results"), translate("joint_goal_acc")
    ('점수', '결과 8개', 'joint_goal_acc')
    """
    exact, patterns = _catalogue()
    if text in exact:
        return exact[text]
    for pattern, korean in patterns:
        if match := pattern.fullmatch(text):
            return korean.format(**{name: exact.get(value, value) for name, value in match.groupdict().items()})
    return text


@cache
def _catalogue() -> tuple[dict[str, str], list[tuple[re.Pattern[str], str]]]:
    """Exact texts, and patterns of texts with values such as ``{n} results``."""
    lines = Path(__file__).with_name("korean.txt").read_text("utf-8").splitlines()
    rows = [line.split(" => ") for line in lines if line and not line.startswith("#")]
    exact = {english: korean for english, korean in rows if "{" not in english}
    named = (
        (re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.+?)", re.escape(text)), korean) for text, korean in rows if "{" in text
    )
    # a longer pattern is more specific: "{a} to {b}" matches every sentence with a "to"
    return exact, [(re.compile(pattern), korean) for pattern, korean in sorted(named, key=lambda row: -len(row[0]))]
