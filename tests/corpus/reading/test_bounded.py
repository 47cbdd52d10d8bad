"""Input with an extreme compression ratio needs little memory: the peak of a separate process is measured."""

from __future__ import annotations

import bz2
import gzip
import lzma
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from corpus.reading import containers, files
from corpus.reading import parquet as parquet_reading
from corpus.reading.files import read_blocks
from corpus.reading.inputs import find_inputs, plan_units
from corpus.reading.parquet import open_parquet, read_page_header, read_rows, row_bytes
from corpus.reading.read import Record, RejectedRecord, read_unit

READ = """
import re, sys
from collections import Counter
from pathlib import Path
from corpus.reading.inputs import find_inputs
from corpus.reading.read import RejectedRecord, read_unit
from corpus.reading.inputs import plan_units
found = Counter()
for unit in plan_units(find_inputs(sys.argv[1:], {}, "text")):
    for record in read_unit(unit, Counter(), 3):
        found[record.reason if isinstance(record, RejectedRecord) else "record"] += 1
print(int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) >> 10)
print(*found)
"""  # ru_maxrss would be that of the process that started this one, where that was larger
LIMIT_MIB = 300


def read_apart(path: Path) -> tuple[int, str]:
    """Peak memory in MiB, and what was read."""
    result = subprocess.run([sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=True)
    peak, reasons = result.stdout.splitlines()
    return int(peak), reasons


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory of a process is read from /proc")
def test_packed_text_of_half_a_gigabyte(tmp_path: Path) -> None:
    block = b"0" * (1 << 20)
    zst = zstandard.ZstdCompressor(level=19).compressobj()
    packed = b"".join(zst.compress(block) for _ in range(512)) + zst.flush()
    (tmp_path / "a.txt.zst").write_bytes(packed)
    bomb = bz2.compress(block * 32) * 11  # streams in a row, 352 MiB
    (tmp_path / "b.txt.bz2").write_bytes(bomb)
    assert len(packed) < 100_000 and len(bomb) < 1_000
    for name in ("a.txt.zst", "b.txt.bz2"):
        peak, reasons = read_apart(tmp_path / name)
        assert peak < LIMIT_MIB and reasons == "record_too_long"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory of a process is read from /proc")
def test_parquet_whose_rows_are_one_long_string(tmp_path: Path) -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 1_000, pa.int32()), pa.array(["가" * 9_000_000]))
    pq.write_table(pa.table({"text": column}), tmp_path / "a.parquet", compression="zstd")
    assert (tmp_path / "a.parquet").stat().st_size < 10_000
    peak, reasons = read_apart(tmp_path / "a.parquet")
    assert peak < LIMIT_MIB and reasons == "record"


def test_parquet_pages_that_unpack_to_far_more_are_refused_by_their_headers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_reading, "PAGE_BYTES", 1 << 20)
    for name, texts in {"long": ["a" * 5_000_000, "b"], "many": ["a" * 10_000] * 1_000}.items():
        pq.write_table(
            pa.table({"text": texts}), tmp_path / f"{name}.parquet", use_dictionary=False, compression="zstd"
        )
        [reject] = read_all(tmp_path / f"{name}.parquet")
        assert (
            isinstance(reject, RejectedRecord) and reject.reason == "damaged_file" and b"that unpacks to" in reject.raw
        )


def read_all(path: Path) -> list[Record | RejectedRecord]:
    return [found for unit in plan_units(find_inputs([str(path)], {}, "text")) for found in read_unit(unit, Counter())]


@pytest.mark.parametrize(
    "options", [{}, {"use_dictionary": False}, {"data_page_version": "2.0"}, {"compression": "none"}]
)
def test_page_headers_are_read_as_they_were_written(tmp_path: Path, options: dict[str, object]) -> None:
    texts = [f"{n}번째 글이다." * (n % 50) for n in range(20_000)]
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet", data_page_size=10_000, **options)
    raw = (tmp_path / "a.parquet").read_bytes()
    chunk = pq.read_metadata(tmp_path / "a.parquet").row_group(0).column(0)
    start = min(filter(None, (chunk.dictionary_page_offset, chunk.data_page_offset)))
    end, unpacked, pages = start + chunk.total_compressed_size, 0, 0
    while start < end:
        header = read_page_header(raw[start:])
        assert header
        unpacked, start, pages = unpacked + header[0] + header[2], start + header[1] + header[2], pages + 1
    assert (start, unpacked) == (end, chunk.total_uncompressed_size) and pages > 3
    assert read_page_header(b"\xff" * 10) is None and read_page_header(b"") is None


def test_rows_come_by_bytes_and_cells_above_the_record_limit_are_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(containers, "RECORD_BYTES", 1_000)
    monkeypatch.setattr(parquet_reading, "BATCH_BYTES", 2_000)
    texts = ["a" * 900, None, "b" * 1_001, "", "c" * 999, "d" * 999, "e"] * 9
    lists = [[text, None] if text else None for text in texts]
    pq.write_table(pa.table({"text": texts, "lists": lists}), tmp_path / "a.parquet")
    with (tmp_path / "a.parquet").open("rb") as source, open_parquet(source, "a") as file:
        parts = list(read_rows(file, source, "a", [0]))
    assert sum(part.table.num_rows for part in parts) == len(texts) and len(parts) > 5
    assert max(sum(sum(row_bytes(column)) for column in part.table.columns) for part in parts) <= 2_000
    rejects = [found for found in read_all(tmp_path / "a.parquet") if isinstance(found, RejectedRecord)]
    assert [(found.line, found.reason) for found in rejects if found.reason != "no_text"] == [
        (number, "record_too_long") for number, text in enumerate(texts, 1) if text and len(text) > 1_000
    ]


@pytest.mark.parametrize("suffix", files.PACKINGS)
def test_no_block_is_longer_than_asked_and_streams_in_a_row_are_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    pack = {".gz": gzip.compress, ".zst": zstandard.compress, ".xz": lzma.compress, ".bz2": bz2.compress}[suffix]
    text = b"".join(b"%d," % number for number in range(60_000))
    monkeypatch.setattr(files, "BLOCK_BYTES", 1_000)
    monkeypatch.setattr(files, "UNPACKED_BYTES", 1_000)
    monkeypatch.setattr(files, "PACKED_BYTES", 77)
    (tmp_path / f"a{suffix}").write_bytes(pack(text) + pack(b"") + pack(b"end"))
    blocks = list(read_blocks(tmp_path / f"a{suffix}"))
    assert b"".join(blocks) == text + b"end" and max(map(len, blocks)) <= 1_000
