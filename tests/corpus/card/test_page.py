"""How the data card shows figures and text: numbers, sizes, excerpts."""

from __future__ import annotations

import re

import pytest

from corpus.card.korean import translate, translate_html, translate_markdown
from corpus.card.page import excerpts, read_templates, share, size


@pytest.mark.parametrize(
    ("part", "whole", "shown"), [(0, 5, "0.00 %"), (1, 3, "33.33 %"), (1, 10**9, "< 0.01 %"), (0, 0, "–")]
)
def test_share_never_says_zero_of_something(part: int, whole: int, shown: str) -> None:
    assert share(part, whole) == shown


def test_sizes_are_decimal_as_in_the_paper() -> None:
    assert [size(n) for n in (999, 1_000, 62_650_000_000)] == ["999 bytes", "1.00 kB", "62.65 GB"]


def test_excerpts_start_shortly_before_the_first_difference() -> None:
    left, right = excerpts("가" * 900 + "#바다 " + "나" * 900, "가" * 900 + "나" * 900)
    assert left.startswith("…" + "가" * 60 + "#바다 나") and right.startswith("…" + "가" * 60 + "나")
    assert len(left) < 250 and len(right) < 250
    assert excerpts("전화 [TEL]", "전화 010-0000-0000") == ("전화 [TEL]", "전화 010-0000-0000")
    assert excerpts("가나", "가나") == ("가나", "가나")


def test_every_fixed_text_of_the_page_has_its_korean() -> None:
    template = next(text for text in read_templates() if text.lstrip().startswith("{% macro"))
    body = re.sub(r"<style>.*?</style>|{%.*?%}", "", template, flags=re.DOTALL)
    fixed = {text.strip() for text in re.findall(r"(?<=>)[^<>{}]+(?=<)", body)}
    assert len(fixed) > 30
    assert {text for text in fixed if re.search("[a-z]{2}", text) and translate(text) == text} == set()


def test_translated_text_keeps_its_values_and_its_escapes() -> None:
    page = '<html lang="en"><p>1,234 sentences were split, 1,000 kept.</p><td>a &lt; b "c"</td><pre>Scores</pre>'
    assert translate_html(page) == (
        '<html lang="ko"><p>나눈 문장 1,234개, 남긴 문장 1,000개.</p><td>a &lt; b "c"</td><pre>Scores</pre>'
    )
    assert (
        translate_markdown("## Scores\n\n| task | 8 results |\n|---|---:|")
        == "## 점수\n\n| 과제 | 결과 8개 |\n|---|---:|"
    )
