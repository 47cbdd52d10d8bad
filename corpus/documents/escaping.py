"""Text that somebody else wrote, made fit to be shown: file names, sources, samples, messages.

ESC and the other control characters command a terminal, bidi overrides turn what a reader sees around, and ``<``, ``|``
or a backtick command a page. Here they become characters that only say what stood there: ``⟨U+001B⟩``. The price: the
joiners inside an emoji and private-use letters are shown as their numbers, too. Standard library only: cards, report
and console all come here.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Callable

# control, format (bidi, zero width), lone surrogate (a byte that is no text), private use, separators of lines
ESCAPED_CATEGORIES = frozenset(("Cc", "Cf", "Cs", "Co", "Zl", "Zp"))
UNUSUAL = re.compile("[^ -~ㄱ-ㅎ가-힣一-鿿]")  # few characters are looked up
MARKDOWN = re.compile(r"[\\`*_\[\]|~#$]")
LEADING = re.compile(r"^( ?\d{1,9})([.)])(?= |$)|^( ?)([-+=])(?=[-+=]*(?: |$))")  # begins a list, underlines a heading
FENCE = re.compile("`{3,}")


def escape_controls(text: str, keep: str = "") -> str:
    """``text`` without a character that cannot be seen: ``↵`` for a line end, ``⟨U+202E⟩`` and the like for others.

    Args:
        keep: characters that stay, such as line ends where text is shown line by line.
    """
    return _escape(text, keep, lambda character: "↵" if character == "\n" else f"⟨U+{ord(character):04X}⟩")


def escape_message(text: str) -> str:
    """The same for a message of several lines: further lines are indented in ours, so no name can feign one."""
    return re.sub(r"\n(?! {2})", "↵", escape_controls(text, keep="\n"))


def escape_json(text: str) -> str:
    """JSON with such characters as ``\\u202e``: the same value, and safe to print. Line ends between values stay."""
    return _escape(text, "\n", lambda character: json.dumps(character)[1:-1])


def _escape(text: str, keep: str, name: Callable[[str], str]) -> str:
    def show(found: re.Match[str]) -> str:
        is_shown = found[0] in keep or unicodedata.category(found[0]) not in ESCAPED_CATEGORIES
        return found[0] if is_shown else name(found[0])

    return UNUSUAL.sub(show, text)


def escape_markdown(text: str) -> str:
    """One line of Markdown, for a paragraph or a table cell, that renders as ``text`` reads, with any content."""
    line = html.escape(MARKDOWN.sub(r"\\\g<0>", re.sub(r"\s+", " ", escape_controls(text))), quote=False)
    return LEADING.sub(lambda found: f"{found[1] or found[3] or ''}\\{found[2] or found[4]}", line)


def code_block(text: str, language: str = "") -> str:
    """A code block of Markdown that ``text`` cannot end."""
    ticks = max((len(run) for run in FENCE.findall(text)), default=2) + 1
    return f"{'`' * ticks}{language}\n{escape_controls(text, keep=chr(10)).rstrip()}\n{'`' * ticks}"
