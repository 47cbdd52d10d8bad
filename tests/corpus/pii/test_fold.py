"""Disguised values are read as plain ones."""

from __future__ import annotations

import pytest

from corpus.pii.detect import find_pii


@pytest.mark.parametrize(
    "address", ["29[.]10[.]20[.]30", "29(.)10(.)20(.)30", "29 점 10 점 20 점 30", "29 . 10 . 20 . 30"]
)
def test_an_ip_address_with_disguised_dots_is_found(address: str) -> None:
    text = f"서버는 {address}에 있다"
    assert [(span.type, text[span.start : span.end]) for span in find_pii(text)] == [("IP", address)]
