"""Planted values of all types in 2,000 documents and in a custom dev file: none is in any file that a run leaves.

All stages run as a user starts them, are killed at several moments and resumed. Every file of the run folder, of the
cache and of the folder for temporary files is searched after each kill and at the end.
"""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpus.pii.types import PII_TYPES
from corpus.reading.files import read_blocks
from tests.corpus.pii.layouts.values import WRITINGS, draw_value

DOCUMENTS, VALUES_PER_TYPE = 2_000, 10
WRITTEN_AS = {
    "TEL": ("mobile", "연락처"), "RRN": ("hyphen", "주민번호"), "FRN": ("hyphen", "외국인등록번호"),
    "EMAIL": ("plain", "메일"), "IP": ("v4", "아이피"), "MAC": ("colons", "맥주소"), "MENTION": ("Latin", "인스타"),
    "ADDRESS": ("flat", "주소"), "ACCOUNT": ("hyphens", "신한은행 계좌"), "PASSPORT": ("new", "여권번호"),
    "DRIVER": ("hyphens", "운전면허"), "BRN": ("hyphens", "사업자등록번호"), "HEALTH": ("hyphen", "건강보험증 번호"),
    "CARD": ("hyphens", "카드"), "PLATE": ("tight", "차량"), "URL": ("path", "홈페이지"),
}  # fmt: skip
"""Name of the writing, and the label before it."""
MOMENTS = (
    "corpus/.work-*", "corpus/.work-*/clean/unit-*", "corpus/.work-*/clean/unit-00004", "corpus/.work-*/decide-drops",
    "corpus/statistics.json", "tokenizer/*", "finetune/mine/*/seed-1/errors.json",
)  # fmt: skip
"""The run is killed when such a file exists."""

pytestmark = pytest.mark.slow


def draw_planted(rng: Random) -> list[tuple[str, str]]:
    """(label, value) of ten different values of each type."""
    planted: list[tuple[str, str]] = []
    for writing in WRITINGS:
        name, label = WRITTEN_AS[writing.type]
        if writing.name == name:
            values: set[str] = set()
            while len(values) < VALUES_PER_TYPE:
                values.add(draw_value(rng, writing).text)
            planted += [(label, value) for value in sorted(values)]
    return planted


def write_inputs(folder: Path, corpus: Path, planted: list[tuple[str, str]]) -> None:
    """Eight files of documents with two values each, the last record broken, and the dev file of a custom task."""
    rng = Random(1)
    lines = b"".join(read_blocks(corpus)).splitlines()
    texts = [json.loads(line)["text"][:1_500] for line in islice(lines, DOCUMENTS)]
    for part in range(8):
        with (folder / f"part-{part}.jsonl").open("w", encoding="utf-8") as file:
            for n, text in islice(enumerate(texts), part, None, 8):
                (label, value), (other_label, other) = planted[n % len(planted)], rng.choice(planted)
                words = [*text.split(" "), f"\n{label} {value}로 알려 주세요."]
                words.insert(rng.randrange(len(words)), f"({other_label}: {other})")
                name = value if n % 50 == 0 else f"d{n}"
                file.write(json.dumps({"id": name, "text": " ".join(words)}, ensure_ascii=False) + "\n")
            file.write(f'{{"text": "{planted[part][1]}\n')
    # three of ten values: sentences with these are dropped as contaminated, the others are hidden
    rows = [(f"{label} {value}", "가나"[n % 2]) for n, (label, value) in enumerate(planted) if n % 10 < 3]
    rows += [(f"{text[:200]} {value}", "가") for text, (_, value) in zip(texts[:20], planted, strict=False)]
    for name, content in (("dev", rows), ("train", [("정말 좋다", "가"), ("정말 나쁘다", "나")] * 8)):
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("text", "label"), *content])
    (folder / "planted.yaml").write_text(
        "corpus: {inputs: 'part-*.jsonl'}\n"
        "tokenizer: {vocab_size: 2000}\n"
        "pretrain:\n  steps: 10\n  global_batch: 8\n  rows: {sequence_length: 64}\n"
        "  model: {layers: 1, hidden: 64, heads: 2, intermediate: 128}\n"
        "finetune: {tasks: [mine], custom: {mine: {kind: label, train: train.csv, dev: dev.csv}}, seeds: [1, 2]}\n",
        "utf-8",
    )


def start(folder: Path) -> subprocess.Popen[bytes]:
    """A run with the test's own folders for the cache and for temporary files."""
    places = {"TMPDIR": "tmp", "XDG_CACHE_HOME": "cache", "HF_HOME": "cache/hf", "HOME": "home"}
    for place in places.values():
        (folder / "left" / place).mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, **{name: str(folder / "left" / place) for name, place in places.items()}}
    command = [sys.executable, "-m", "launch", "run", str(folder / "planted.yaml"), "workers=1"]
    return subprocess.Popen(
        [*command, "--runs", str(folder / "left" / "runs")], env=environment, stderr=subprocess.PIPE
    )


def hits(folder: Path, planted: list[tuple[str, str]]) -> Iterator[str]:
    """File and value, for each value in the bytes of a file, in its name or in the rows of a table."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes() + str(path.relative_to(folder)).encode()
        if path.suffix == ".parquet":
            try:
                content += str(pq.read_table(path).to_pylist()).encode()
            except (pa.ArrowInvalid, OSError):
                assert ".work-" in str(path), f"{path} is broken"
        for _, value in planted:
            if value.encode() in content or json.dumps(value)[1:-1].encode() in content:
                yield f"{path.relative_to(folder)}: {value}"


def test_no_file_of_a_killed_and_resumed_run_holds_a_planted_value(
    tmp_path: Path, shared: Callable[[str], Path]
) -> None:
    planted = draw_planted(Random(5))
    assert len({value for _, value in planted}) == VALUES_PER_TYPE * len(PII_TYPES)
    write_inputs(tmp_path, shared("data/corpora/petitions.jsonl.zst"), planted)
    out = tmp_path / "left" / "runs" / "planted"
    for moment in MOMENTS:
        process = start(tmp_path)
        while process.poll() is None and not list(out.glob(moment)):
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        _, errors = process.communicate()
        assert process.returncode == -signal.SIGKILL, errors.decode()
        assert list(hits(tmp_path / "left", planted)) == [], moment
    process = start(tmp_path)
    _, errors = process.communicate()
    assert process.returncode == 0, errors.decode()
    assert list(hits(tmp_path / "left", planted)) == []
    counts = json.loads((out / "corpus" / "manifest.json").read_text("utf-8"))["counts"]
    assert re.search(r"\[[A-Z]+\]", next(out.rglob("errors.json")).read_text("utf-8"))
    assert min(counts["pii"].values()) >= 50 and counts["audit"] == {}
    assert counts["records"]["rejected"] == {"broken_json": 8} and counts["dropped_sentences"]["in_benchmark"] >= 500
