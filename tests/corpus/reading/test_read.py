"""Files to records: formats, damage, units of work."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import lzma
import unicodedata
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from corpus.documents.errors import BadInput
from corpus.reading import containers, files, inputs
from corpus.reading.files import find_texts, name_files
from corpus.reading.inputs import Input, Unit, plan_units
from corpus.reading.read import ALWAYS_ALLOWED, Record, RejectedRecord, check_rejected_share, mask_record, read_unit

TEXTS = ["아침에 비가 왔다.", "버스가 늦었다.\n그래서 걸었다.", "저녁에는 갰다."]
JSONL = "".join(json.dumps({"text": text, "id": n}) + "\n" for n, text in enumerate(TEXTS)).encode()


def read_all(path: Path, text_field: str = "text") -> list[Record | RejectedRecord]:
    inputs = [Input(path, path.name, text_field=text_field)]
    return [found for unit in plan_units(inputs) for found in read_unit(unit, Counter())]


def texts_of(path: Path) -> list[str]:
    return [found.text for found in read_all(path) if isinstance(found, Record)]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", JSONL),
        ("a.jsonl.gz", gzip.compress(JSONL, mtime=0)),
        ("a.jsonl.zst", zstandard.compress(JSONL)),
        ("two-frames.jsonl.zst", zstandard.compress(JSONL[:50]) + zstandard.compress(JSONL[50:])),
        ("crlf.jsonl", JSONL.replace(b"\n", b"\r\n")),
        ("bom.jsonl", b"\xef\xbb\xbf" + JSONL),
        ("a.txt", "\n\n".join(TEXTS).encode()),
        ("crlf.txt.gz", gzip.compress("\r\n\r\n".join(TEXTS).replace("다.\n그", "다.\r\n그").encode())),
    ],
)
def test_every_format_gives_the_same_texts(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    assert texts_of(tmp_path / name) == TEXTS


def test_parquet_gives_texts_and_rejects_by_row(tmp_path: Path) -> None:
    rows = {"body": pa.array([b"\xea\xb0\x80", b"\xff\xfe", None, "나".encode()]).cast(pa.binary()).view(pa.string())}
    pq.write_table(pa.table(rows), tmp_path / "a.parquet")
    found = read_all(tmp_path / "a.parquet", "body")
    assert [f.text if isinstance(f, Record) else (f.line, f.reason) for f in found] == [
        "가", (2, "invalid_utf8"), (3, "no_text"), "나",
    ]  # fmt: skip
    with pytest.raises(BadInput, match=r"no column 'text'.*body"):
        read_all(tmp_path / "a.parquet")


DAMAGE = {
    b'{"text": "half': "broken_json",
    b'["text"]': "not_an_object",
    b'{"id": 1}': "no_text",
    b'{"text": null}': "no_text",
    b'{"text": 5}': "text_is_not_a_string",
    b'{"text": "\xff"}': "invalid_utf8",
    b'{"text": "\\ud800"}': "lone_surrogate",
    b"[" * 100_000: "json_too_deep",
    b'{"text": ' + b"1" * 5_000 + b"}": "text_is_not_a_string",
}


@pytest.mark.parametrize(("line", "reason"), DAMAGE.items(), ids=lambda value: str(value)[:24])
def test_a_broken_line_costs_exactly_itself(tmp_path: Path, line: bytes, reason: str) -> None:
    lines = JSONL.splitlines(keepends=True)
    (tmp_path / "a.jsonl").write_bytes(lines[0] + line + b"\n" + b"".join(lines[1:]))
    found = read_all(tmp_path / "a.jsonl")
    assert [f.text for f in found if isinstance(f, Record)] == TEXTS
    assert [(f.line, f.reason) for f in found if isinstance(f, RejectedRecord)] == [(2, reason)]


def test_an_endless_line_is_rejected_and_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "RECORD_BYTES", 1_000)
    monkeypatch.setattr(files, "BLOCK_BYTES", 64)
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "' + b"a" * 5_000 + b'"}\n' + JSONL)
    reject, *records = read_all(tmp_path / "a.jsonl")
    assert isinstance(reject, RejectedRecord) and reject.reason == "record_too_long" and len(reject.raw) <= 1_000
    assert [record.text for record in records if isinstance(record, Record)] == TEXTS


def test_empty_lines_are_counted_and_skipped(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"\n" + JSONL + b"  \n")
    counts: Counter[str] = Counter()
    assert len(list(read_unit(Unit(Input(tmp_path / "a.jsonl", "a.jsonl")), counts))) == 3
    assert counts == {"records": 3, "empty": 2}


PACKERS = {".gz": gzip.compress, ".zst": zstandard.compress, ".xz": lzma.compress, ".bz2": bz2.compress}


@pytest.mark.parametrize("suffix", PACKERS)
def test_packed_files_that_end_early_keep_what_comes_before(tmp_path: Path, suffix: str) -> None:
    texts = [f"{n}번째 날 {hashlib.sha256(str(n).encode()).hexdigest()}" for n in range(9_000)]
    packed = PACKERS[suffix]("".join(json.dumps({"text": text}) + "\n" for text in texts).encode())
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(packed[: len(packed) // 2] if suffix != ".xz" else packed[:-200])
    *records, reject = read_all(path)
    found = [record.text for record in records if isinstance(record, Record)]
    assert found == texts[: len(found)] and (found or suffix in (".xz", ".bz2"))
    assert (
        isinstance(reject, RejectedRecord) and reject.reason == "damaged_file" and b"ends in the middle" in reject.raw
    )
    for content in (b"", b"not packed at all"):
        path.write_bytes(content)
        [reject] = read_all(path)
        assert isinstance(reject, RejectedRecord) and reject.reason == "damaged_file"
    path.write_bytes(PACKERS[suffix](b""))
    assert read_all(path) == []


def test_a_damaged_parquet_file_costs_only_itself(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": TEXTS}), tmp_path / "a.parquet")
    content = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(content[: len(content) // 2])
    [reject] = read_all(tmp_path / "a.parquet")
    assert isinstance(reject, RejectedRecord) and reject.reason == "damaged_file"


def test_text_is_nfc_and_keeps_compatibility_jamo(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(unicodedata.normalize("NFD", "한국") + " ㅋㅋ", "utf-8")
    assert texts_of(tmp_path / "a.txt") == ["한국 ㅋㅋ"]


def test_ids_and_sources_come_from_the_record_or_from_file_and_byte(tmp_path: Path) -> None:
    lines = ['{"text": "가", "id": 7, "source": "백과"}', '{"text": "나", "id": {"x": 1}}']
    (tmp_path / "news.jsonl").write_text("\n".join(lines), "utf-8")
    assert len(lines[0].encode()) + 1 == 45
    found = read_all(tmp_path / "news.jsonl")
    assert [(f.id, f.source) for f in found if isinstance(f, Record)] == [("7", "백과"), ("news.jsonl@45", "news")]


@pytest.mark.parametrize("kind", ["jsonl", "txt"])
def test_units_of_any_size_give_the_same_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    texts = [f"{n}번째 글이다.\n둘째 줄이다." for n in range(40)]
    lines = [json.dumps({"text": text}) for text in texts] if kind == "jsonl" else [text + "\n" for text in texts]
    path = tmp_path / f"a.{kind}"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    whole = read_all(path)
    for size in (1, 100, 999):
        monkeypatch.setattr(inputs, "UNIT_BYTES", size)
        assert len(list(plan_units([Input(path, path.name)]))) > 1
        assert read_all(path) == whole
    assert len(list(plan_units([Input(path, path.name)], whole_files=True))) == 1


def test_large_parquet_files_are_cut_at_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.table({"text": [f"{n}번째 글." for n in range(30)]}), tmp_path / "a.parquet", row_group_size=10)
    whole = read_all(tmp_path / "a.parquet")
    monkeypatch.setattr(inputs, "UNIT_BYTES", 1)
    assert len(list(plan_units([Input(tmp_path / "a.parquet", "a.parquet")]))) == 3
    assert read_all(tmp_path / "a.parquet") == whole


def test_paths_folders_and_globs_are_expanded_once_and_in_order(tmp_path: Path) -> None:
    for name in ("b/x.txt", "a/x.txt", "a/y.jsonl.zst", "a/notes.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("글", "utf-8")
    found = find_texts([str(tmp_path / "b" / "x.txt"), str(tmp_path), str(tmp_path / "*" / "*.txt")])
    assert [str(path.relative_to(tmp_path)) for path in found] == ["b/x.txt", "a/x.txt", "a/y.jsonl.zst"]
    assert name_files(found) == ["b/x.txt", "a/x.txt", "a/y.jsonl.zst"]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("gone.txt", "no such file"),
        ("notes.md", "not a text file"),
        ("empty", "no text file"),
        ("*.txt", "no text file"),
    ],
)
def test_paths_without_text_are_bad_input(tmp_path: Path, pattern: str, message: str) -> None:
    (tmp_path / "notes.md").write_text("글", "utf-8")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match=message):
        find_texts([str(tmp_path / pattern)])


def test_a_record_after_the_end_of_a_damaged_file_has_its_number(tmp_path: Path) -> None:
    packed = gzip.compress(JSONL)
    (tmp_path / "a.jsonl.gz").write_bytes(packed[:-8] + bytes(8))  # the sum of all bytes is wrong
    *records, reject = read_all(tmp_path / "a.jsonl.gz")
    assert isinstance(reject, RejectedRecord) and reject.line == len(records) + 1


@pytest.mark.parametrize(
    ("bad", "good", "is_refused"),
    [
        (ALWAYS_ALLOWED, 0, False), (ALWAYS_ALLOWED + 1, 0, True), (0, 0, False), (20, 80, False), (21, 80, True),
        (20, 79, True), (200, 800, False), (201, 800, True),
    ],
)  # fmt: skip
def test_more_than_a_share_of_unreadable_records_is_bad_input(
    bad: int, good: int, is_refused: bool, caplog: pytest.LogCaptureFixture
) -> None:
    assert ALWAYS_ALLOWED < 20
    with pytest.raises(BadInput, match=f"{bad} of {bad + good} records") if is_refused else nullcontext():
        check_rejected_share({"not_json": bad}, good, 0.2, "quarantine/")
    assert (f"{bad} of {bad + good} records" in caplog.text) == (bad > 0 and not is_refused)


def test_quarantine_shows_the_form_of_a_record_and_none_of_its_words() -> None:
    assert mask_record('{"text": "김영희 010-0123-4567'.encode() + b"\xff") == '{"aaaa": "가가가 000-0000-0000�'
