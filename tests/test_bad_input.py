"""What users do wrong, at the command line: one sentence, exit code 2, nothing that a later run would trust."""

from __future__ import annotations

import json
import subprocess
import sys
import unicodedata
from pathlib import Path

import pyarrow.parquet as pq
import pytest

GOOD = '{"id": "1", "text": "가온시 도서관이 새 강좌를 연다."}\n'


def clean(
    folder: Path, *inputs: str, prefix: str = "", overrides: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    names = ",".join(inputs)
    command = [
        f"{prefix}{sys.executable} -m launch corpus smoke corpus.inputs={names} finetune.data=null",
        *overrides,
    ]
    return subprocess.run(["bash", "-c", " ".join(command)], capture_output=True, text=True, cwd=folder)


def refused(result: subprocess.CompletedProcess[str], *words: str) -> None:
    assert result.returncode == 2, result.stderr
    assert "Traceback" not in result.stderr
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("malmoi: ")
    for word in words:
        assert word in last


def manifests(folder: Path) -> list[Path]:
    return list(folder.rglob("manifest.json"))


def test_folder_without_data(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    refused(clean(tmp_path, "empty"), "empty")
    assert not manifests(tmp_path)


@pytest.mark.parametrize("content", ["", "\n\n\n"])
def test_empty_corpus(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.jsonl").write_text(content)
    refused(clean(tmp_path, "a.jsonl"), "no document")
    assert not manifests(tmp_path)


def test_file_of_broken_lines_is_refused_and_its_lines_are_kept(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(GOOD + '{"text": \n' * 50, "utf-8")
    refused(clean(tmp_path, "a.jsonl"), "quarantine")
    kept = (tmp_path / "runs/smoke/corpus/quarantine/records.jsonl").read_text("utf-8").splitlines()
    assert len(kept) == 50
    assert not manifests(tmp_path)


def test_single_bad_lines_cost_only_themselves(tmp_path: Path) -> None:
    bad = b'{"text": 7}\n[1]\n{"text"\n{"id": "x"}\n{"text": "\xff\xfe"}\n'
    (tmp_path / "a.jsonl").write_bytes(GOOD.encode() + bad + GOOD.replace("새", "첫").replace('"1"', '"2"').encode())
    result = clean(tmp_path, "a.jsonl")
    assert result.returncode == 0, result.stderr
    lines = (tmp_path / "runs/smoke/corpus/quarantine/records.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["line"] for line in lines] == [2, 3, 4, 5, 6]
    assert all(json.loads(line)["reason"] for line in lines)
    assert len(sentences(tmp_path)) == 2


def test_nfd_and_crlf_text_comes_out_as_nfc(tmp_path: Path) -> None:
    text = "가온시 도서관이 새 강좌를 연다."
    (tmp_path / "a.txt").write_bytes(unicodedata.normalize("NFD", text).encode() + b"\r\n")
    result = clean(tmp_path, "a.txt")
    assert result.returncode == 0, result.stderr
    assert sentences(tmp_path) == [text]


def test_output_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(GOOD, "utf-8")
    (tmp_path / "runs").write_text("in the way")
    refused(clean(tmp_path, "a.jsonl"), "runs")


def test_full_disk_is_one_sentence_and_the_next_run_completes(tmp_path: Path) -> None:
    texts = [GOOD.replace("도서관", f"도서관 {n}호점").replace('"1"', f'"{n}"') for n in range(3000)]
    (tmp_path / "a.jsonl").write_text("".join(texts), "utf-8")
    refused(clean(tmp_path, "a.jsonl", prefix="ulimit -f 16; "))
    assert not manifests(tmp_path)
    assert clean(tmp_path, "a.jsonl").returncode == 0
    assert len(sentences(tmp_path)) == 3000


def sentences(folder: Path) -> list[str]:
    shards = sorted((folder / "runs/smoke/corpus/documents").glob("*.parquet"))
    return [s for shard in shards for row in pq.read_table(shard).to_pylist() for s in row["sentences"]]
