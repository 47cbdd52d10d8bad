"""Recorded results of the tokenizer stage on the sample."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from corpus.documents.shards import Document, write_shard
from launch.sample.unpack import read_archive
from tests.same_results.recording import check_recorded
from tests.same_results.test_corpus import sample_records, varied_texts
from tokenizer.config import TokenizerConfig
from tokenizer.extend import extend_vocabulary
from tokenizer.measuring.compare import compare
from tokenizer.run import TokenizerInputs, run

KINDS: dict[str, dict[str, Any]] = {
    "klue": {},
    "bpe": {"builder": "bpe", "special_tokens": "bert", "min_frequency": 3},
    "malmoi": {"builder": "malmoi", "overgeneration": 1.5, "unused": 20},
    "jamo": {"builder": "malmoi", "jamo_fallback": True, "alphabet": 200},
}


@cache
def sample_documents() -> list[Document]:
    sources = [record["source"] for record in sample_records()]
    rows = zip(sources, [re.split(r"\s*\n\s*|(?<=[.?!]) ", text) for text in varied_texts()], strict=True)
    return [Document(f"d{number}", source, tuple(filter(None, own))) for number, (source, own) in enumerate(rows)][::2]


def write_corpus(folder: Path, documents: list[Document], per_shard: int = 100) -> Path:
    (folder / "documents").mkdir(parents=True)
    for number, start in enumerate(range(0, len(documents), per_shard)):
        write_shard(folder / "documents" / f"shard-{number:05}.parquet", documents[start : start + per_shard])
    return folder


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several portions and partitions, as of a large corpus; no installed versions in the results."""
    monkeypatch.setattr("tokenizer.building.count.SMALLEST_PORTION", 15_000)
    monkeypatch.setattr("tokenizer.building.count.PARTITION_BYTES", 50_000)
    monkeypatch.setattr("tokenizer.run.version", lambda name: "1")
    monkeypatch.setattr("tokenizer.run.versions_of", lambda name: {})


def build(kind: str, corpus: Path, out: Path) -> Path:
    out.mkdir()
    run(
        TokenizerConfig(**{"vocab_size": 1200, "alphabet": 500, "unused": 50, **KINDS[kind]}),
        TokenizerInputs(corpus),
        out,
    )
    return out


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text("utf-8") for path in sorted(folder.iterdir()) if path.is_file()}


def test_vocabularies_and_their_measures(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", sample_documents())
    folders = [build(kind, corpus, tmp_path / kind) for kind in KINDS]
    results = {f"{folder.name} {name}": text for folder in folders for name, text in contents(folder).items()}
    for path, content in read_archive("klue.tar.zst").items():
        if path.endswith("dp-v1.1_dev.tsv"):
            (tmp_path / "gold.tsv").write_bytes(content)
    texts = {"sample": varied_texts()[:60], "other": varied_texts(2)[100:160]}
    results |= {one.name: one for one in compare(folders, texts, [tmp_path / "gold.tsv"])}
    check_recorded("vocabularies", results, tmp_path)


def test_extended_vocabularies(tmp_path: Path) -> None:
    documents = sample_documents()
    corpus = write_corpus(tmp_path / "corpus", documents[:70])
    domain = write_corpus(tmp_path / "domain", documents[70:])
    results: dict[str, Any] = {}
    for kind in ("klue", "jamo"):
        base, out = build(kind, corpus, tmp_path / kind), tmp_path / f"{kind} extended"
        out.mkdir()
        results[f"{kind} found"] = extend_vocabulary(base, domain, out, 60, multiple=8)
        results |= {f"{kind} {name}": text for name, text in contents(out).items()}
    check_recorded("extended_vocabularies", json.loads(json.dumps(results)), tmp_path)
