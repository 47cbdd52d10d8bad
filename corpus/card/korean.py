"""Finished pages in Korean: every piece of text between tags that ``korean.txt`` knows gives way to its translation.

Pages are written once, in English, and translated as a whole, so that a figure cannot differ between languages. The
price: text of the corpus that is word for word a heading of ours would be translated, too.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

BETWEEN_TAGS = re.compile(r"(?<=>)[^<>]+(?=<)")
BETWEEN_MARKS = re.compile(r"(^#+ |^> \*\*Mind:\*\* |^\| ?| \| | \|$)", re.MULTILINE)
KEPT = re.compile("<(style|pre)>")


def translate_html(page: str) -> str:
    """A page whose text is Korean as far as the catalogue goes; style and preformatted text stay."""
    page = page.replace('<html lang="en">', '<html lang="ko">')
    parts, position = [], 0
    for start, end in _kept(page):
        parts += [BETWEEN_TAGS.sub(lambda found: _node(found[0]), page[position:start]), page[start:end]]
        position = end
    return "".join(parts) + BETWEEN_TAGS.sub(lambda found: _node(found[0]), page[position:])


def _kept(page: str) -> Iterator[tuple[int, int]]:
    """From the tag that opens style or preformatted text to the one that closes it; one never closed is none."""
    position, closed = 0, {"style", "pre"}
    for tag in KEPT.finditer(page):
        if tag.start() < position or tag[1] not in closed:
            continue
        end = page.find(f"</{tag[1]}>", tag.end())
        if end < 0:
            closed.remove(tag[1])  # none to come either
        else:
            position = end + len(tag[0]) + 1
            yield tag.start(), position


def translate_markdown(page: str) -> str:
    """The same for Markdown: headings, paragraphs of one line and cells of tables."""
    lines = ("".join(map(translate, BETWEEN_MARKS.split(line))) for line in page.split("\n"))
    return "\n".join(lines).replace("\n> **Mind:** ", "\n> **주의:** ")


def _node(text: str) -> str:
    inner = text.strip()
    found = translate(html.unescape(inner))
    return text.replace(inner, html.escape(found, quote=False)) if inner else text


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
    lines = Path(__file__).with_name("korean.txt").read_text("utf-8").splitlines()
    rows = [line.split(" => ") for line in lines if line and not line.startswith("#")]
    exact = {english: korean for english, korean in rows if "{" not in english}
    patterns = [(_pattern(english), korean) for english, korean in rows if "{" in english]
    return exact, patterns


def _pattern(english: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.+?)", re.escape(english)))
