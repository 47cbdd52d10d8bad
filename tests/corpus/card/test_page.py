"""How the data card shows figures and text: numbers, sizes, marks that change no text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.card.korean import translate, translate_html, translate_markdown
from corpus.card.page import Part, mark_change, mark_replaced, read_templates, share, size
from corpus.documents.escaping import escape_controls


@pytest.mark.parametrize(
    ("part", "whole", "shown"), [(0, 5, "0.00 %"), (1, 3, "33.33 %"), (1, 10**9, "< 0.01 %"), (0, 0, "–")]
)
def test_share_never_says_zero_of_something(part: int, whole: int, shown: str) -> None:
    assert share(part, whole) == shown


def test_sizes_are_decimal_as_in_the_paper() -> None:
    assert [size(n) for n in (999, 1_000, 62_650_000_000)] == ["999 bytes", "1.00 kB", "62.65 GB"]


TEXT = st.text(alphabet=st.sampled_from("가나 [TEL]01\n\u200b"), max_size=50)


@given(TEXT, TEXT)
def test_marking_changes_no_text(before: str, after: str) -> None:
    for mark in (mark_change, mark_replaced):
        left, right = mark(before, after)
        assert "".join(part.text for part in left) == escape_controls(before)
        assert "".join(part.text for part in right) == escape_controls(after)


def test_values_are_marked_whole_where_letters_agree() -> None:
    left, right = mark_replaced("주소 [EMAIL], 전화 [TEL]", "주소 EMILY@example.com, 전화 010-0000-0000")
    assert left == [Part("주소 "), Part("[EMAIL]", True), Part(", 전화 "), Part("[TEL]", True)]
    assert right == [Part("주소 "), Part("EMILY@example.com", True), Part(", 전화 "), Part("010-0000-0000", True)]


def test_long_text_is_shown_around_what_changed() -> None:
    left, right = mark_change("가" * 900 + "#바다 " + "나" * 900, "가" * 900 + "나" * 900)
    assert [part.text for part in left if part.is_marked] == ["#바다 "]
    assert sum(len(part.text) for part in left) < 250
    assert sum(len(part.text) for part in right) < 250


def test_texts_of_few_characters_are_marked_from_the_first_difference_to_the_last() -> None:
    left, right = mark_change("가 " * 40_000, "가 " * 20_000 + "나 나 " + "가 " * 19_990)
    assert [part.text for part in (*left, *right) if part.is_marked][1].startswith("나 나")
    assert mark_change("가" * 9_000, "가" * 9_000)[0] == [Part("가" * 240), Part("…")]


def test_every_fixed_text_of_the_page_has_its_korean() -> None:
    template = next(text for text in read_templates() if text.lstrip().startswith("{% macro"))
    body = re.sub(r"<style>.*?</style>|{%.*?%}", "", template, flags=re.DOTALL)
    fixed = {text.strip() for text in re.findall(r"(?<=>)[^<>{}]+(?=<)", body)}
    assert len(fixed) > 30
    assert {text for text in fixed if re.search("[a-z]{2}", text) and translate(text) == text} == set()


def test_translated_text_keeps_its_values_and_its_escapes() -> None:
    page = '<html lang="en"><p>1,234 sentences were split, 1,000 kept.</p><td>a &lt; b</td><pre>Scores</pre>'
    assert translate_html(page) == (
        '<html lang="ko"><p>나눈 문장 1,234개, 남긴 문장 1,000개.</p><td>a &lt; b</td><pre>Scores</pre>'
    )
    assert (
        translate_markdown("## Scores\n\n| task | 8 results |\n|---|---:|")
        == "## 점수\n\n| 과제 | 결과 8개 |\n|---|---:|"
    )
