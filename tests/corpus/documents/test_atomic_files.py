"""Files written in one step, and files read up to a limit."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import zstandard

from corpus.documents.atomic_files import parse_json, read_bytes
from corpus.documents.errors import BadInput

PACK = {"a.txt": bytes, "a.txt.gz": gzip.compress, "a.txt.zst": zstandard.compress}


@pytest.mark.parametrize("name", PACK)
@pytest.mark.parametrize("size", [0, 1, 4_096])
def test_a_file_of_the_largest_size_is_read_and_a_longer_one_refused(tmp_path: Path, name: str, size: int) -> None:
    content = bytes(range(256)) * 16
    (tmp_path / name).write_bytes(PACK[name](content[:size]))
    assert read_bytes(tmp_path / name, size) == content[:size]
    if size:
        with pytest.raises(BadInput, match=f"at most {size - 1:,} bytes"):
            read_bytes(tmp_path / name, size - 1)


@pytest.mark.parametrize("name", ["a.txt.gz", "a.txt.zst"])
def test_a_packed_file_that_is_damaged_is_refused(tmp_path: Path, name: str) -> None:
    packed = PACK[name](bytes(range(256)) * 99)
    (tmp_path / name).write_bytes(packed[: len(packed) // 2])
    with pytest.raises(BadInput, match=r"ends in the middle|not a readable"):
        read_bytes(tmp_path / name, 1 << 20)
    (tmp_path / name).write_bytes(b"not packed")
    with pytest.raises(BadInput, match="not a readable"):
        read_bytes(tmp_path / name, 1 << 20)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": "\\ud800"}', "half of a surrogate pair"), ('{"\\udfff": 1}', "half of a surrogate pair"),
        ("[" * 100_000, "nested too deeply"), ("9" * 5_000, "more than 4,300 digits"), ("{", "Expecting"),
    ],
)  # fmt: skip
def test_json_that_cannot_be_used_is_an_error_with_its_reason(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_json(text)


def test_a_whole_surrogate_pair_is_a_character() -> None:
    assert parse_json('"\\ud83d\\ude00"') == "😀"
