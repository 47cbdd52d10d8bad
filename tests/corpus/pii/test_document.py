"""A range of a text without personal data, for samples."""

from __future__ import annotations

import pytest

from corpus.pii.hide import DocumentHider, PiiHider

PHONE = "010-0123-4567"


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (0, 3, "문의"),  # ends where the number starts
        (16, 18, "끝"),  # starts where the number ends
        (0, 4, "문의 [TEL]"),
        (15, 18, "[TEL] 끝"),
        (0, 18, "문의 [TEL] 끝"),
    ],
)
def test_a_value_that_crosses_an_end_of_the_range_is_tagged_as_a_whole(left: int, right: int, expected: str) -> None:
    hider = DocumentHider(PiiHider(), b"salt")
    assert hider.cut_between_values(f"문의 {PHONE} 끝", left, right) == expected


def test_a_file_name_is_hidden_with_and_without_its_suffix() -> None:
    hider = DocumentHider(PiiHider(), b"salt")
    for name in ("글.txt", "a/b.c/글.jsonl.gz", ".hidden", "readme"):
        assert hider.hide_in_file_name(name) == name
    for name in (f"{PHONE}.txt", f"a.b/{PHONE}.jsonl.gz"):
        hidden = hider.hide_in_file_name(name)
        assert PHONE not in hidden and "[TEL]" in hidden and hider.hide_in_file_name(name) == hidden
    assert DocumentHider(PiiHider(types=frozenset())).hide_in_file_name(f"{PHONE}.txt") == f"{PHONE}.txt"
