"""The sample as files: readable by anybody, the same bytes for the same seed, a few damaged lines on purpose."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from launch.sample.config import SampleConfig
from launch.sample.run import run

SMALL = {"news": 40, "encyclopedia": 60, "reviews": 30, "dialogue": 24}
PROGRAM = """
import sys, pathlib
from launch.sample.config import SampleConfig
from launch.sample.run import run
run(SampleConfig(**{small}), None, pathlib.Path(sys.argv[1]), workers=int(sys.argv[2]))
"""


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("sample")
    return out, run(SampleConfig(), None, out)


def _documents(out: Path) -> dict[str, str]:
    folder = out / "corpus"
    lines = [
        *(folder / "news.jsonl").read_bytes().splitlines(),
        *(folder / "encyclopedia.jsonl").read_bytes().splitlines(),
    ]
    lines += gzip.decompress((folder / "reviews.jsonl.gz").read_bytes()).splitlines()
    rows = [json.loads(line) for line in lines] + pq.read_table(folder / "dialogue.parquet").to_pylist()
    return {row["id"]: row["text"] for row in rows}


def _digests(out: Path) -> dict[str, str]:
    files = sorted(path for path in out.rglob("*") if path.is_file())
    return {str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_counts_tell_what_was_written(sample: tuple[Path, dict[str, Any]]) -> None:
    out, counts = sample
    config = SampleConfig()
    assert counts["documents"] == {
        name: getattr(config, name) for name in ("dialogue", "encyclopedia", "news", "reviews")
    }
    assert len(counts["personal_data"]) == 16
    assert not list(out.rglob("*.partial"))


def test_truth_points_at_the_texts_in_the_files(sample: tuple[Path, dict[str, Any]]) -> None:
    out, counts = sample
    texts = _documents(out)
    rows = [json.loads(line) for line in (out / "pii_truth.jsonl").read_text("utf-8").splitlines()]
    assert sum(len(row["spans"]) for row in rows) == sum(counts["personal_data"].values())
    for row in rows:
        for start, end, kind in row["spans"]:
            value = texts[row["id"]][start:end]
            assert value == value.strip()
            assert kind != "EMAIL" or "@example." in value


def test_some_articles_come_twice(sample: tuple[Path, dict[str, Any]]) -> None:
    texts = _documents(sample[0])
    copies = [name for name in texts if name.endswith("-copy")]
    assert len(copies) == 12
    assert all(texts[name] == texts[name.removesuffix("-copy")] for name in copies)


def test_damaged_lines_are_damaged_as_described(sample: tuple[Path, dict[str, Any]]) -> None:
    good, decomposed, textless, broken, latin = (sample[0] / "corpus" / "damaged.jsonl").read_bytes().splitlines()
    assert json.loads(good)["text"]
    assert "\u1112" in json.loads(decomposed)["text"]  # a conjoining ㅎ
    assert "text" not in json.loads(textless)
    with pytest.raises(json.JSONDecodeError):
        json.loads(broken)
    with pytest.raises(UnicodeDecodeError):
        latin.decode("utf-8")


def test_bytes_depend_on_the_seed_alone(tmp_path: Path) -> None:
    digests = []
    for number, (hash_seed, workers) in enumerate((("0", "1"), ("77", "2"))):
        out = tmp_path / str(number)
        out.mkdir()
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        program = PROGRAM.replace("{small}", repr(SMALL))
        subprocess.run([sys.executable, "-c", program, str(out), workers], check=True, env=environment)
        digests.append(_digests(out))
    assert digests[0] == digests[1]
    other = tmp_path / "other"
    other.mkdir()
    run(SampleConfig(seed=2, **SMALL), None, other)
    assert _digests(other)["corpus/news.jsonl"] != digests[0]["corpus/news.jsonl"]
