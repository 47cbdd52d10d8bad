"""Handles after ``@`` at their shortest length, and code before them at its greatest distance."""

from __future__ import annotations

import pytest

from corpus.pii.detect import find_pii


@pytest.mark.parametrize(
    ("text", "handles"),
    [
        ("@abc님 안녕", ["@abc"]),
        ("안녕 @ab님", []),  # two characters
        ("SET @abc님", []),
        ("x DECLARE    @abc님", []),
        ("x DECLARE     @abc님", ["@abc"]),  # the keyword starts more than twelve characters before the handle
    ],
)
def test_handles_have_three_characters_and_no_code_before_them(text: str, handles: list[str]) -> None:
    assert [text[span.start : span.end] for span in find_pii(text)] == handles
