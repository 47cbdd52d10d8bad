"""Finished pages in Korean: every piece of text between tags that ``korean.txt`` knows gives way to its translation.

Pages are written once, in English, and translated as a whole, so that a figure cannot differ between languages. The
price: text of the corpus that is word for word a heading of ours would be translated, too.
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
    """A page whose text is Korean as far as the catalogue goes; style and preformatted text stay."""
    pieces = TAG.split(page.replace('<html lang="en">', '<html lang="ko">'))  # text and tags in turn
    kept = ""
    for n, piece in enumerate(pieces[:-1]):
        if n % 2:
            kept = "" if piece == f"</{kept}>" else kept or KEPT.get(piece, "")
        elif n and not kept and (inner := piece.strip()):
            pieces[n] = piece.replace(inner, html.escape(translate(html.unescape(inner)), quote=False))
    return "".join(pieces)


def translate_markdown(page: str) -> str:
    """The same for Markdown: headings, paragraphs of one line and cells of tables."""
    lines = ("".join(map(translate, BETWEEN_MARKS.split(line))) for line in page.split("\n"))
    return "\n".join(lines).replace("\n> **Warning:** ", "\n> **주의:** ")


def translate(text: str) -> str:
    """The Korean for a text, or the text itself.

    >>> translate("Scores"), translate("8 results"), translate("joint_goal_acc")
    ('점수', '결과 8개', 'joint_goal_acc')
    """
    exact, patterns = _catalogue()
    if text in exact:
        return exact[text]
    for pattern, korean in patterns:
        if found := pattern.fullmatch(text):
            return korean.format(**{name: exact.get(value, value) for name, value in found.groupdict().items()})
    return text


@cache
def _catalogue() -> tuple[dict[str, str], list[tuple[re.Pattern[str], str]]]:
    """Texts, and patterns of texts that hold a value: ``{n} results``."""
    lines = Path(__file__).with_name("korean.txt").read_text("utf-8").splitlines()
    rows = [line.split(" => ") for line in lines if line and not line.startswith("#")]
    exact = {english: korean for english, korean in rows if "{" not in english}
    named = (
        (re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.+?)", re.escape(text)), korean) for text, korean in rows if "{" in text
    )
    # a longer pattern is more specific: "{a} to {b}" matches every sentence with a "to"
    return exact, [(re.compile(pattern), korean) for pattern, korean in sorted(named, key=lambda row: -len(row[0]))]
