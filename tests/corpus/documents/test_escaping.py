"""Text of others is shown, not obeyed: held against a Markdown renderer, an HTML parser and a JSON reader."""

from __future__ import annotations

import json
import unicodedata
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from corpus.documents.escaping import (
    ESCAPED_CATEGORIES,
    code_block,
    escape_controls,
    escape_json,
    escape_markdown,
    escape_message,
)

BIDI = "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
HOSTILE = st.text(
    st.sampled_from([*"\\`*_[](){}<>|~#$!&:;/='\"+-. \t\n\r0189az가힣漢", *"\x1b\x9b\x85\x7f\u2028", *BIDI])
    | st.characters(),
    max_size=40,
)  # fmt: skip


class Page(HTMLParser):
    """Elements and text of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.elements.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


@given(HOSTILE)
@example("\x1b[31m" + BIDI)
def test_nothing_invisible_is_left_and_nothing_visible_changes(text: str) -> None:
    shown = escape_controls(text)
    assert all(c.isprintable() or unicodedata.category(c) in ("Zs", "Cn") for c in shown)  # blanks; not assigned yet
    assert shown == escape_controls(shown)
    if all(unicodedata.category(c) not in ESCAPED_CATEGORIES for c in text):
        assert shown == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31m.txt", "a⟨U+001B⟩[31m.txt"),
        ("a\nb", "a↵b"),
        ("보기\u202etxt.exe", "보기⟨U+202E⟩txt.exe"),
        ("d\udcff", "d⟨U+DCFF⟩"),
        ("\x9b2J", "⟨U+009B⟩2J"),
        ("대한민국 '24 — 漢字 ㅋㅋ", "대한민국 '24 — 漢字 ㅋㅋ"),
    ],
)
def test_the_replaced_character_is_named(text: str, shown: str) -> None:
    assert escape_controls(text) == shown


def test_a_name_cannot_feign_a_line_of_its_own() -> None:
    ours = "recipe.yaml: 2 problems\n  pretrain.lr: too large\n  seed: missing"
    assert escape_message(ours) == ours
    assert escape_message("a\nmalmoi: all is well.txt: not UTF-8") == "a↵malmoi: all is well.txt: not UTF-8"


@given(st.recursive(HOSTILE, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(HOSTILE, inner, max_size=3)))
def test_json_keeps_its_value_and_is_safe_to_print(value: object) -> None:
    text = escape_json(json.dumps(value, ensure_ascii=False, indent=1))
    assert json.loads(text) == value
    assert not any(unicodedata.category(c) in ESCAPED_CATEGORIES for c in text.replace("\n", ""))
    text.encode("utf-8")


def rendered(source: str) -> Page:
    return Page(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(source))


def reads_as(text: str) -> str:
    return " ".join(escape_controls(text).split())


@given(HOSTILE.filter(lambda text: text.strip()))
@example("<script>alert(1)</script>")
@example("[x](javascript:alert(1)) ![i](http://e.example/i.png) <http://e.example>")
@example("1. eins")
@example("a\n===")
@example("&lt;b&gt; &amp; \\&#60;")
@example("`` ` ```")
def test_a_paragraph_renders_as_the_text_reads(text: str) -> None:
    page = rendered(escape_markdown(text) + "\n")
    assert page.elements == ["p"]
    assert " ".join(page.text.split()) == reads_as(text)


@given(HOSTILE.filter(lambda text: text.strip()))
@example("a | b \\| c \\")
@example("`a|b`")
def test_a_table_cell_renders_as_the_text_reads(text: str) -> None:
    page = rendered(f"| head | n |\n|---|---|\n| {escape_markdown(text)} | 1 |\n")
    assert page.elements == ["table", "thead", "tr", "th", "th", "tbody", "tr", "td", "td"]
    assert " ".join(page.text.split()) == f"head n {reads_as(text)} 1"


@given(HOSTILE)
@example("a\n```\n<script>")
@example("````")
def test_no_text_ends_its_code_block(text: str) -> None:
    page = rendered(f"{code_block(text, 'yaml')}\n\nafter\n")
    assert page.elements == ["pre", "code", "p"]
    assert page.text.rstrip().endswith("after")
