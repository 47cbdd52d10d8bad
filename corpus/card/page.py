"""Rendering of the data card: number formats, bars, marked changes, escaping.

Markdown and HTML are rendered from the same facts; equal facts give equal bytes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup, escape

from corpus.documents.escaping import code_block, escape_controls, escape_markdown
from corpus.documents.templates import load_templates

TAG = re.compile(r"\[[A-Z]{2,10}\]")
SHOWN_AROUND = 60  # characters before and after what changed
MAX_SHOWN = 240
MAX_PAIRS = 150_000  # of equal characters, in which difflib looks; two samples of 1,000 have some 60,000


class Part(NamedTuple):
    """A part of a text, marked if it changed."""

    text: str
    is_marked: bool = False


def count(value: float) -> str:
    """With thousands separators."""
    return f"{value:,.0f}"


def share(part: float, whole: float) -> str:
    """A percentage; a dash if ``whole`` is 0, and "< 0.01 %" for small non-zero parts."""
    if not whole:
        return "–"
    percent = 100 * part / whole
    return f"{percent:.2f} %" if not part or percent >= 0.01 else "< 0.01 %"


def size(byte_count: float) -> str:
    """A size in decimal units, as in the paper."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if byte_count < 1000:
            return f"{byte_count:,.0f} {unit}" if unit == "bytes" else f"{byte_count:.2f} {unit}"
        byte_count /= 1000
    return f"{byte_count:,.2f} TB"


def width(part: float, whole: float) -> str:
    """Width of a bar in percent; non-zero parts are always visible."""
    return "0" if not part or not whole else f"{max(0.4, 100 * part / whole):.2f}"


def cut(text: str, chars: int = MAX_SHOWN) -> str:
    return text if len(text) <= chars else text[:chars] + "…"


def mark_change(before: str, after: str) -> tuple[list[Part], list[Part]]:
    """Excerpts of both texts around their differences, which are marked."""
    in_after = Counter(after)
    if sum(n * in_after[character] for character, n in Counter(before).items()) > MAX_PAIRS:
        start = _same_chars(before, after)  # linear time: mark everything from the first to the last difference
        same = _same_chars(before[start:][::-1], after[start:][::-1])
        blocks = [(start, len(before) - same, start, len(after) - same)] if before != after else []
    else:
        found = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        blocks = [block[1:] for block in found if block[0] != "equal"]
    return _around(before, [(a, b) for a, b, _, _ in blocks]), _around(after, [(c, d) for _, _, c, d in blocks])


def _same_chars(one: str, other: str) -> int:
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def mark_replaced(before: str, after: str) -> tuple[list[Part], list[Part]]:
    """The same if ``before`` has tags such as ``[TEL]`` instead of values: mark tags and values."""
    tags = [match.span() for match in TAG.finditer(before)]
    ends = [end for _, end in tags]
    values, position = [], 0
    for end, following in zip([0, *ends], [*(start for start, _ in tags), len(before)], strict=True):
        kept = before[end:following]
        at = after.find(kept[:SHOWN_AROUND], position) if kept or not end else len(after)
        if at < 0 or (end and not kept and end != len(before)):
            return mark_change(before, after)
        if end:
            values.append((position, at))
        position = at + len(kept)
    return _around(before, tags), _around(after, values)


def mark_tags(text: str) -> list[Part]:
    """The first ``MAX_SHOWN`` characters with tags such as ``[TEL]`` marked."""
    return list(_parts(text, 0, min(len(text), MAX_SHOWN), [match.span() for match in TAG.finditer(text)]))


def _around(text: str, spans: Sequence[tuple[int, int]]) -> list[Part]:
    first = max(0, spans[0][0] - SHOWN_AROUND) if spans else 0
    last = min(len(text), spans[-1][1] + SHOWN_AROUND if spans else len(text), first + MAX_SHOWN)
    return list(_parts(text, first, last, spans))


def _parts(text: str, first: int, last: int, spans: Sequence[tuple[int, int]]) -> Iterator[Part]:
    if first:
        yield Part("…")
    position = first
    for start, end in ((max(start, first), min(end, last)) for start, end in spans):
        if start < end:
            yield from (Part(escape_controls(text[position:start])),) if start > position else ()
            yield Part(escape_controls(text[start:end]), True)
            position = end
    if position < last:
        yield Part(escape_controls(text[position:last]))
    if last < len(text):
        yield Part("…")


def stylesheet() -> str:
    """The CSS of data card and report."""
    return Path(__file__).with_name("style.css").read_text("utf-8")


def read_templates() -> list[str]:
    """The text of the templates."""
    return [path.read_text("utf-8") for path in sorted(Path(__file__).parent.glob("*.j2"))]


def render(template: str, facts: Mapping[str, Any]) -> str:
    """Render a template of this folder; ``.html.j2`` templates escape HTML automatically.

    All printed text passes through ``escape_controls``; the filter ``lines`` keeps line ends.
    """
    is_html = template.endswith("html.j2")
    environment = load_templates("corpus.card", autoescape=is_html, finalize=_shown if is_html else None)
    shown = (stylesheet, count, share, size, width, escape_controls, cut, mark_tags)
    environment.globals |= {function.__name__: function for function in shown}
    environment.filters |= {"md": escape_markdown, "fenced": code_block, "lines": _lines}
    return environment.get_template(template).render(**facts)


def _shown(value: Any) -> Any:
    return escape_controls(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _lines(text: str) -> Markup:
    return escape(escape_controls(text, keep="\n"))
