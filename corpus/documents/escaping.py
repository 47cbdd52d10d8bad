"""Escape untrusted text (file names, sources, samples, messages) for terminals, Markdown and JSON.

Control characters can command a terminal, and bidi overrides can reorder text; they become visible: ``⟨U+001B⟩``.
Joiners inside emoji and private-use characters are shown the same way. Cards, report and console use this module.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Callable

# control, format (bidi, zero width), lone surrogates, private use, line separators
ESCAPED_CATEGORIES = frozenset(("Cc", "Cf", "Cs", "Co", "Zl", "Zp"))
UNUSUAL = re.compile("[^ -~ㄱ-ㅎ가-힣一-鿿]")  # only these are looked up, for speed
MARKDOWN = re.compile(r"[\\`*_\[\]|~#$]")
# a list item, or the underline of a heading
LEADING = re.compile(r"^( ?\d{1,9})([.)])(?= |$)|^( ?)([-+=])(?=[-+=]*(?: |$))")
FENCE = re.compile("`{3,}")


def escape_controls(text: str, keep: str = "") -> str:
    """Make control and other invisible characters visible: ``↵`` for a line end, ``⟨U+202E⟩`` and so on.

    Args:
        keep: characters to leave unchanged, such as line ends.
    """
    return _escape(text, keep, lambda character: "↵" if character == "\n" else f"⟨U+{ord(character):04X}⟩")


def escape_message(text: str) -> str:
    """The same for messages of several lines; only indented further lines are kept, so no name can fake one."""
    return re.sub(r"\n(?! {2})", "↵", escape_controls(text, keep="\n"))


def escape_json(text: str) -> str:
    """JSON with these characters as ``\\u202e``: the same value, safe to print. Line ends between values stay."""
    return _escape(text, "\n", lambda character: json.dumps(character)[1:-1])


def _escape(text: str, keep: str, name: Callable[[str], str]) -> str:
    def show(match: re.Match[str]) -> str:
        is_shown = match[0] in keep or unicodedata.category(match[0]) not in ESCAPED_CATEGORIES
        return match[0] if is_shown else name(match[0])

    return UNUSUAL.sub(show, text)


def escape_markdown(text: str) -> str:
    """One line of Markdown, for a paragraph or a table cell, that renders as ``text``."""
    line = html.escape(MARKDOWN.sub(r"\\\g<0>", re.sub(r"\s+", " ", escape_controls(text))), quote=False)
    return LEADING.sub(lambda match: f"{match[1] or match[3] or ''}\\{match[2] or match[4]}", line)


def code_block(text: str, language: str = "") -> str:
    """A Markdown code block; ``text`` cannot close it."""
    ticks = max((len(run) for run in FENCE.findall(text)), default=2) + 1
    return f"{'`' * ticks}{language}\n{escape_controls(text, keep=chr(10)).rstrip()}\n{'`' * ticks}"
