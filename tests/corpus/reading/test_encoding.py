"""Encodings of raw text: what is recognised, and that CP949 and UTF-16 give the same records as UTF-8."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from corpus.documents.encoding import UNDECODED, decode_blocks, detect_encoding
from corpus.documents.errors import BadInput
from corpus.documents.shards import read_documents, shard_paths
from corpus.reading import inputs
from corpus.reading.inputs import find_inputs, plan_units
from corpus.reading.read import Record, RejectedRecord, mask_record, read_unit

Clean = Callable[..., dict[str, Any]]
KOREAN = "가온시 도서관이 새 강좌를 연다. 시민은 누구나 들을 수 있고, 신청은 이번 주 금요일까지 받는다.\n"
CHINESE = "我们的图书馆今天开放,欢迎大家来看书学习,时间是上午九点到下午五点,周末也开放。希望大家喜欢这里。\n"
JAPANESE = "図書館は今日から新しい講座を開きます。市民なら誰でも参加できます。\n"


@pytest.mark.parametrize(
    ("sample", "encoding"),
    [
        (KOREAN.encode("cp949"), "cp949"),
        (KOREAN.encode("cp949") * 50 + b"\xff broken\n", "cp949"),
        (KOREAN.encode("cp949")[:-30], "cp949"),
        ("한글\n".encode("cp949"), "cp949"),
        (KOREAN.encode(), "utf-8"),
        (KOREAN.encode()[:50], "utf-8"),
        (KOREAN.encode() * 3 + KOREAN.encode("cp949"), "utf-8"),
        (KOREAN.encode("utf-16"), "utf-16"),
        (b"\xfe\xff" + KOREAN.encode("utf-16-be"), "utf-16"),
        (KOREAN.encode("utf-8-sig"), "utf-8"),
        (CHINESE.encode("gb2312"), "utf-8"),
        (JAPANESE.encode("euc-jp"), "utf-8"),
        ("naïve café, déjà vu\n".encode("latin-1"), "utf-8"),
        (b"plain\n", "utf-8"),
        (bytes(range(256)) * 10, "utf-8"),
        (b"", "utf-8"),
    ],
)
def test_encodings_are_recognised_by_the_lines_of_a_sample(sample: bytes, encoding: str) -> None:
    assert detect_encoding(sample) == encoding


@pytest.mark.parametrize(
    ("everyday", "rare", "encoding"),
    [(0, 39, "cp949"), (0, 40, "utf-8"), (4, 36, "cp949"), (3, 37, "utf-8"), (10, 90, "cp949"), (9, 91, "utf-8")],
)
def test_a_tenth_of_korean_text_is_everyday_syllables(everyday: int, rare: int, encoding: str) -> None:
    """Of few syllables nothing is known, and they count as Korean."""
    assert detect_encoding(("이" * everyday + "뷔" * rare + "\n").encode("cp949")) == encoding


@pytest.mark.parametrize(("hangul", "han", "encoding"), [(6, 4, "cp949"), (5, 5, "utf-8"), (59, 41, "utf-8")])
def test_six_tenths_of_the_foreign_letters_are_hangul(hangul: int, han: int, encoding: str) -> None:
    assert detect_encoding(("이" * hangul + "漢" * han + "\n").encode("cp949")) == encoding


def test_a_line_of_cp949_decides_only_if_more_lines_are_of_it_than_of_utf8() -> None:
    korean, other = KOREAN.encode("cp949"), KOREAN.encode()
    assert [detect_encoding(korean * n + other) for n in (1, 2)] == ["utf-8", "cp949"]


def test_oracle_text_is_recognised(shared: Callable[[str], Path]) -> None:
    lines = shared("oracle/pii_public.jsonl").read_text("utf-8").splitlines()
    texts = [json.loads(line)["text"] for line in lines if line.strip()]
    raw = ("\n".join(texts) + "\n").encode("cp949", "ignore")
    assert detect_encoding(raw) == "cp949" and detect_encoding(raw.decode("cp949").encode()) == "utf-8"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "cp949", "utf-16", "auto"])
def test_text_is_the_same_for_any_size_of_block(encoding: str, size: int) -> None:
    raw = ("english\n" + KOREAN).encode("utf-8" if encoding == "auto" else encoding)
    blocks = [raw[start : start + size] for start in range(0, len(raw), size)]
    assert "".join(decode_blocks(blocks, encoding)) == "english\n" + KOREAN


def test_bytes_that_cannot_be_decoded_can_be_had_back() -> None:
    text = "".join(decode_blocks([b"a\xff\xb0\n"], "utf-8"))
    assert UNDECODED.search(text) and text.encode("utf-8", "surrogateescape") == b"a\xff\xb0\n"


def read_all(path: Path, encoding: str = "auto") -> list[Record | RejectedRecord]:
    inputs = find_inputs([str(path)], {}, "text", encoding)
    return [found for unit in plan_units(inputs) for found in read_unit(unit, Counter())]


def texts_of(path: Path, encoding: str = "auto") -> list[str]:
    found = read_all(path, encoding)
    assert all(isinstance(record, Record) for record in found), found
    assert len({record.id for record in found if isinstance(record, Record)}) == len(found)
    return [record.text for record in found if isinstance(record, Record)]


@pytest.mark.parametrize("kind", ["txt", "jsonl", "ndjson"])
@pytest.mark.parametrize("encoding", ["cp949", "utf-16"])
def test_records_are_those_of_utf8_for_any_size_of_unit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, encoding: str
) -> None:
    texts = [f"{n}번째 글이다.\n둘째 줄이다." for n in range(40)]
    lines = [text + "\n" for text in texts]
    if kind != "txt":
        lines = [json.dumps({"text": text}, ensure_ascii=False) for text in texts]
    (tmp_path / f"a.{kind}").write_bytes("\n".join(lines).encode(encoding))
    for size in (1 << 24, 500, 33):
        monkeypatch.setattr(inputs, "UNIT_BYTES", size)
        monkeypatch.setattr(inputs, "SMALL_BYTES", size)
        assert texts_of(tmp_path / f"a.{kind}") == texts
        assert texts_of(tmp_path / f"a.{kind}", encoding) == texts


def test_a_line_that_cannot_be_decoded_costs_itself(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(KOREAN.encode("cp949") + b"\xff\xff\n" + KOREAN.encode("cp949"))
    found = read_all(tmp_path / "a.txt")
    assert [(f.line, f.reason) for f in found if isinstance(f, RejectedRecord)] == [(2, "invalid_cp949")]
    assert len(found) == 2


def test_quarantine_gives_no_text_of_another_encoding_away() -> None:
    assert mask_record("가온 010".encode("cp949")) == "\ufffd" * 4 + " 000"


def test_the_stage_reads_cp949_and_says_so(tmp_path: Path, clean: Clean, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    (tmp_path / "a.txt").write_bytes(KOREAN.encode("cp949"))
    clean(tmp_path / "a.txt")
    [document] = [d for shard in shard_paths(tmp_path / "out" / "documents") for d in read_documents(shard)]
    assert " ".join(document.sentences) == KOREAN.strip()
    assert f"{tmp_path / 'a.txt'}: read as CP949" in caplog.messages


def test_cp949_declared_as_utf8_is_refused(tmp_path: Path, clean: Clean) -> None:
    (tmp_path / "a.txt").write_bytes(KOREAN.encode("cp949"))
    with pytest.raises(BadInput, match=r"a\.txt: looks like CP949, not UTF-8; set corpus\.encoding=cp949"):
        clean(tmp_path / "a.txt", encoding="utf-8")
