"""Bare domains, and names of code that look like them."""

from __future__ import annotations

import pytest

from corpus.pii.detect import find_pii


@pytest.mark.parametrize(
    ("text", "domains"),
    [
        ("naver.com에서 보았다", ["naver.com"]),
        ("naver.com(네이버)", ["naver.com"]),
        ("com.example.app을 쓴다", []),  # a package
        ('log.info("a")를 쓴다', []),  # a call
        ("M.net 방송", []),
    ],
)
def test_packages_and_calls_are_not_domains(text: str, domains: list[str]) -> None:
    assert [text[span.start : span.end] for span in find_pii(text)] == domains
