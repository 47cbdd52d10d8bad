"""The result does not depend on unit sizes, readers of compressed files, workers, ranges of fingerprints, or damage."""

from __future__ import annotations

import gzip
import hashlib
import json
import tracemalloc
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from corpus import clean as cleaning
from corpus.config import CorpusConfig
from corpus.documents.shards import read_documents, shard_paths
from corpus.documents.units import map_units
from corpus.duplicates import exact
from corpus.reading import containers, inputs
from corpus.reading.inputs import Input, find_inputs, plan_units
from corpus.run import CorpusInputs, run

Clean = Callable[..., dict[str, Any]]
STORIES = [
    {
        "id": str(n % 40),
        "text": f"{n % 60}번째 날에는 010-0{n % 9}23-4567로 전화했다.\n#해시 <b>그리고</b> {n % 7}번 문을 열었다.",
    }
    for n in range(120)
]


def digests(out: Path) -> dict[str, str]:
    files = sorted(path for path in out.rglob("*") if path.is_file())
    return {str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def lines_of(records: list[Any]) -> bytes:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    (tmp_path / "plain.jsonl").write_bytes(lines_of(STORIES) + b'{"text": "half\n')
    (tmp_path / "packed.jsonl.zst").write_bytes(zstandard.compress(lines_of(STORIES[::-1])))
    (tmp_path / "text.txt.gz").write_bytes(gzip.compress("\n\n".join(str(story["text"]) for story in STORIES).encode()))
    plain = "\r\n\r\n".join(f"{n}쪽\r\n{n % 3}번" for n in range(90))
    (tmp_path / "plain.txt").write_bytes(plain.encode())
    pq.write_table(pa.Table.from_pylist(STORIES), tmp_path / "table.parquet", row_group_size=7)
    names = ("plain.jsonl", "packed.jsonl.zst", "text.txt.gz", "plain.txt", "table.parquet")
    return [tmp_path / name for name in names]


@pytest.fixture
def sources(tmp_path: Path) -> dict[str, Any]:
    """A JSON array, and extracts of pages of which one line only looks like an end."""
    texts = [f"== 머리 ==\n{n % 30}번째 '''글'''이다." for n in range(70)]
    pages = [{"namespace": "0", "title": f"쪽 {n}", "text": text} for n, text in enumerate(texts)]
    (tmp_path / "pages.json").write_text(json.dumps(pages, ensure_ascii=False), "utf-8")
    extracts = [f'<doc id="{n}" url="" title="{n}">\n{n}\n\n글 {n}번 </doc>\n줄이다.\n</doc>\n' for n in range(70)]
    (tmp_path / "wiki_00").write_text("".join(extracts), "utf-8")
    return {
        "NAMU": {"inputs": [str(tmp_path / "pages.json")], "format": "namuwiki"},
        "WIKI": {"inputs": [str(tmp_path / "wiki_00")], "format": "wikipedia"},
    }


@pytest.mark.slow
def test_bytes_do_not_depend_on_units_workers_ranges_or_batches(
    tmp_path: Path, clean: Clean, files: list[Path], sources: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: dict[str, Any] = {"sources": sources, "pii": {"repeatable": True}}
    monkeypatch.setattr("corpus.assemble.SHARD_DOCUMENTS", 25)
    clean(*files, out="whole", **settings)
    assert len(shard_paths(tmp_path / "whole" / "documents")) > 2
    monkeypatch.setattr(inputs, "UNIT_BYTES", 1_500)
    monkeypatch.setattr(inputs, "SMALL_BYTES", 1)
    assert len(list(plan_units(find_inputs([str(path) for path in files], {}, "text")))) > 20
    clean(*files, out="three", workers=3, **settings)
    monkeypatch.setattr(exact, "RANGE_PRINTS", 40)
    monkeypatch.setattr(cleaning, "BATCH_CHARS", 50)
    clean(*files, out="engine", map_units=partial(map_units), **settings)  # other engines get whole packed files
    for name in ("three", "engine"):
        assert digests(tmp_path / name) == digests(tmp_path / "whole"), name


def test_a_large_packed_file_is_cut_while_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "UNIT_BYTES", 1_000)
    monkeypatch.setattr(inputs, "SMALL_BYTES", 1)
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(lines_of(STORIES)))
    planned = list(plan_units([Input(path, path.name)]))
    assert len(planned) > 10 and all(unit.items for unit in planned)
    assert [unit.end for unit in plan_units([Input(path, path.name)], feed=False)] == [None]
    assert sum(unit.size for unit in planned) == path.stat().st_size


GOOD = lines_of([{"id": f"g{n}", "text": f"좋은 글 {n}번은 그대로 남는다."} for n in range(20)])
DAMAGE: dict[str, tuple[bytes, dict[str, int]]] = {
    "truncated_json": (b'{"text": "\xea\xb0\x80\n', {"broken_json": 1}),
    "invalid_utf8": (b'{"text": "\xff\xfe"}\n', {"invalid_utf8": 1}),
    "array": (b'["text"]\n', {"not_an_object": 1}),
    "no_text": (b'{"id": "x"}\n', {"no_text": 1}),
    "text_is_a_number": (b'{"text": 5}\n', {"text_is_not_a_string": 1}),
    "lone_surrogate": (b'{"text": "\\ud800"}\n', {"lone_surrogate": 1}),
    "empty_line": (b"\n", {}),
    "endless_line": (b'{"text": "' + b"a" * 300_000 + b'"}\n', {"record_too_long": 1}),
}


PACK: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}


@pytest.fixture(scope="module")
def without_damage(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """Names and sentences of the good documents by packing."""
    home, kept = tmp_path_factory.mktemp("good"), {}
    for packing, pack in PACK.items():
        path, out = home / f"good.jsonl{packing}", home / f"out{packing}"
        path.write_bytes(pack(GOOD))
        out.mkdir()
        run(CorpusConfig(inputs=[str(path)]), CorpusInputs(find_inputs([str(path)], {}, "text"), []), out)
        kept[packing] = [(d.id, d.sentences) for d in documents_of(out)]
    return kept


@pytest.mark.parametrize("kind", DAMAGE)
@pytest.mark.parametrize("packing", PACK)
def test_damage_costs_exactly_its_own_record(
    tmp_path: Path,
    clean: Clean,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    packing: str,
    without_damage: dict[str, list[Any]],
) -> None:
    monkeypatch.setattr(containers, "RECORD_BYTES", 100_000)
    pack = PACK[packing]
    line, reasons = DAMAGE[kind]
    half = len(GOOD) // 2 + GOOD[len(GOOD) // 2 :].index(b"\n") + 1
    (tmp_path / f"bad.jsonl{packing}").write_bytes(pack(GOOD[:half] + line + GOOD[half:]))
    counts = clean(tmp_path / f"bad.jsonl{packing}", out="bad")
    kept = [(d.id, d.sentences) for d in documents_of(tmp_path / "bad")]
    assert kept == without_damage[packing] and len(kept) == 20
    assert counts["records"]["rejected"] == reasons
    assert counts["records"]["empty"] == (kind == "empty_line")
    if reasons:
        row = json.loads((tmp_path / "bad" / "quarantine" / "records.jsonl").read_text("utf-8"))
        assert (row["line"], row["offset"]) == (GOOD[:half].count(b"\n") + 1, half)
        assert {row["reason"]: 1} == reasons and row["file"] == f"bad.jsonl{packing}"


def documents_of(out: Path) -> list[Any]:
    return [document for shard in shard_paths(out / "documents") for document in read_documents(shard)]


@pytest.mark.parametrize("packing", [".gz", ".zst"])
def test_a_truncated_file_next_to_a_whole_one_keeps_its_head(
    tmp_path: Path, clean: Clean, packing: str, caplog: pytest.LogCaptureFixture
) -> None:
    pack = {".gz": gzip.compress, ".zst": zstandard.compress}[packing]
    many = lines_of([{"text": f"{n} {hashlib.sha256(str(n).encode()).hexdigest()}"} for n in range(9_000)])
    (tmp_path / f"a.jsonl{packing}").write_bytes(pack(many)[:-200])
    (tmp_path / "b.jsonl").write_bytes(GOOD)
    (tmp_path / f"empty.jsonl{packing}").touch()
    counts = clean(*(tmp_path / name for name in (f"a.jsonl{packing}", "b.jsonl", f"empty.jsonl{packing}")))
    assert counts["records"]["rejected"] == {"damaged_file": 2}
    assert "(damaged_file 2; each damaged file has also lost an unknown number of records)" in caplog.text
    sources = [document.source for document in documents_of(tmp_path / "out")]
    assert sources.count("b") == 20 and sources.count("a") == counts["documents"] - 20


def test_a_bomb_costs_megabytes_not_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "RECORD_BYTES", 1 << 20)
    bomb = tmp_path / "a.jsonl.gz"
    bomb.write_bytes(gzip.compress(bytes(300 << 20), 1))
    tracemalloc.start()
    [item] = list(inputs.scan_unit(inputs.Unit(Input(bomb, bomb.name)), Counter()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert item.problem == "record_too_long" and peak < 40 << 20


def test_lines_in_the_quarantine_count_from_the_start_of_the_file(
    tmp_path: Path, clean: Clean, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "UNIT_BYTES", 300)
    lines = [json.dumps({"text": f"{n}번 글이다."}, ensure_ascii=False) for n in range(60)]
    for n in (7, 31, 59):
        lines[n] = "{"
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    clean(tmp_path / "a.jsonl")
    rows = (tmp_path / "out" / "quarantine" / "records.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(row)["line"] for row in rows] == [8, 32, 60]


@pytest.mark.parametrize("unit_bytes", [1, 2_000, 1 << 30])
def test_units_of_row_groups_share_the_size_of_their_file(unit_bytes: int, tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(STORIES), tmp_path / "table.parquet", row_group_size=12)
    (item,) = find_inputs([str(tmp_path / "table.parquet")], {}, "text")
    units = list(inputs._cut_row_groups(item, 1_000, unit_bytes))
    assert sum(unit.size for unit in units) == 1_000
    assert [unit.size for unit in units] == [100 * (unit.end - unit.start) for unit in units]
    assert [unit.start for unit in units] == [0, *(unit.end for unit in units[:-1])] and units[-1].end == 10
