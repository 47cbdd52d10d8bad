"""Disguised values are read as plain ones."""

from __future__ import annotations

import pytest

from corpus.pii.detect import find_pii
from corpus.pii.fold import fold_signs


@pytest.mark.parametrize(
    "address", ["29[.]10[.]20[.]30", "29(.)10(.)20(.)30", "29 점 10 점 20 점 30", "29 . 10 . 20 . 30"]
)
def test_an_ip_address_with_disguised_dots_is_found(address: str) -> None:
    text = f"서버는 {address}에 있다"
    assert [(span.type, text[span.start : span.end]) for span in find_pii(text)] == [("IP", address)]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("&#48;&#49;&#50;", "012"),
        ("&#x30;&#X31;&#x0032;", "012"),
        ("&#54620;&#xAD6D;", "한국"),
        ("a&#64;b&#46;c", "a@b.c"),
        ("&#60;b&#62; &#38; &#34;", "&#60;b&#62; &#38; &#34;"),  # markup stays escaped
        ("&#55296; &#9;", "&#55296; &#9;"),  # half of a surrogate pair, a control character
    ],
)
def test_characters_by_their_numbers_are_read(text: str, read: str) -> None:
    assert fold_signs(text).text == read
