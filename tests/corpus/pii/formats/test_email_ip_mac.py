"""Addresses of networks that belong to somebody, and those that nobody owns."""

from __future__ import annotations

import pytest

from corpus.pii.detect import find_pii


@pytest.mark.parametrize(
    ("before", "first", "last", "after"),
    [  # RFC 1918, 6598, 3927, 5771
        ("9.255.30.40", "10.16.30.40", "10.255.30.40", "11.16.30.40"),
        ("172.15.30.40", "172.16.30.40", "172.31.30.40", "172.32.30.40"),
        ("192.167.30.40", "192.168.30.40", "192.168.255.40", "192.169.30.40"),
        ("100.63.30.40", "100.64.30.40", "100.127.30.40", "100.128.30.40"),
        ("126.16.30.40", "127.16.30.40", "127.255.30.40", "128.16.30.40"),
        ("169.253.30.40", "169.254.30.40", "169.254.255.40", "169.255.30.40"),
        ("223.16.30.40", "224.16.30.40", "239.255.30.40", "240.16.30.40"),
        ("173.16.30.40", "172.16.30.40", "172.16.30.41", "171.16.30.40"),
    ],
)
def test_private_blocks_belong_to_nobody(before: str, first: str, last: str, after: str) -> None:
    found = {
        address: [span.type for span in find_pii(f"서버 {address}:8080")] for address in (before, first, last, after)
    }
    assert found == {before: ["IP"], first: [], last: [], after: ["IP"]}
