"""Headers of Parquet pages, written by a small encoder of the Thrift compact protocol."""

from __future__ import annotations

import struct
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from corpus.reading.parquet import read_page_header

BOOLS, BYTE, I32, DOUBLE, BINARY, LIST, STRUCT = (1, 2), 3, 5, 7, 8, 9, 12


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def zigzag(value: int) -> bytes:
    return varint(2 * value if value >= 0 else -2 * value - 1)


def kind_of(value: Any) -> int:
    if isinstance(value, bool):
        return BOOLS[not value]
    return {int: I32, float: DOUBLE, bytes: BINARY, str: BYTE, list: LIST, dict: STRUCT}[type(value)]


def encode(value: Any) -> bytes:
    """A value without its type; a str is one byte."""
    if isinstance(value, bool):
        return b""
    if isinstance(value, int):
        return zigzag(value)
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, bytes):
        return varint(len(value)) + value
    if isinstance(value, str):
        return value.encode("latin-1")
    if isinstance(value, list):
        kind = kind_of(value[0]) if value else I32
        head = bytes([len(value) << 4 | kind]) if len(value) < 15 else bytes([0xF0 | kind]) + varint(len(value))
        return head + b"".join(b"\1" if isinstance(item, bool) else encode(item) for item in value)
    out, last = b"", 0
    for number, field in sorted(value.items()):
        step = number - last
        out += bytes([step << 4 | kind_of(field)]) if step < 16 else bytes([kind_of(field)]) + zigzag(number)
        out, last = out + encode(field), number
    return out + b"\0"


INTS = st.integers(-(2**31), 2**31 - 1)
ONE_KIND = st.one_of(*(st.lists(kind, max_size=40) for kind in (INTS, st.booleans(), st.binary(max_size=4))))
VALUES = st.one_of(
    INTS, st.booleans(), st.floats(allow_nan=False), st.binary(max_size=200), st.characters(max_codepoint=255), ONE_KIND
)
STRUCTS = st.recursive(
    st.dictionaries(st.integers(1, 60), VALUES, max_size=5),
    lambda inner: st.dictionaries(st.integers(1, 60), st.one_of(VALUES, inner), max_size=4),
    max_leaves=8,
)


@example({1: 2.5, 4: -3, 5: b"ab", 6: [True] * 16, 7: [b"", b"c"], 8: {1: "x", 20: False}, 60: True}, 7, 9, b"")
@given(STRUCTS, st.one_of(st.none(), INTS), st.one_of(st.none(), INTS), st.binary(max_size=9))
def test_sizes_are_read_from_any_header_and_only_from_one_with_two_sizes(
    fields: dict[int, Any], unpacked: int | None, packed: int | None, page: bytes
) -> None:
    given_sizes = {number: size for number, size in ((2, unpacked), (3, packed)) if size is not None}
    fields = {number: value for number, value in fields.items() if number not in (2, 3)} | given_sizes
    raw = encode(fields)
    is_header = unpacked is not None and packed is not None and min(unpacked, packed) >= 0
    assert read_page_header(raw + page) == ((unpacked, packed, len(raw)) if is_header else None)


@given(STRUCTS, st.integers(0, 200))
def test_a_header_that_was_cut_is_no_header(fields: dict[int, Any], length: int) -> None:
    raw = encode(fields | {2: 7, 3: 5})
    assert length >= len(raw) or read_page_header(raw[:length]) is None
