"""A range of a text without personal data, for samples."""

from __future__ import annotations

import pytest

from corpus.pii.document import DocumentHider
from corpus.pii.hide import PiiHider

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
