"""The shared format, which every stage may import without waiting for torch."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from corpus import documents
from corpus.documents.errors import BadInput
from corpus.documents.shards import Document, read_documents, shard_paths, write_shard

DOCUMENTS = [Document(f"d{n}", "동화", (f"토끼 {n}마리가 산다.", "여우는 없다.")) for n in range(2_500)]


def test_a_shard_gives_back_what_was_written(tmp_path: Path) -> None:
    assert write_shard(tmp_path / "shard-00000.parquet", DOCUMENTS) == len(DOCUMENTS)
    assert list(read_documents(tmp_path / "shard-00000.parquet")) == DOCUMENTS
    assert [path.name for path in tmp_path.iterdir()] == ["shard-00000.parquet"]


def test_a_folder_without_shards_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no document shards"):
        shard_paths(tmp_path)


def test_a_shard_that_cannot_be_finished_leaves_nothing(tmp_path: Path) -> None:
    def documents() -> Iterator[Document]:
        yield from DOCUMENTS
        raise RuntimeError("the rest is broken")

    with pytest.raises(RuntimeError, match="the rest is broken"):
        write_shard(tmp_path / "shard-00000.parquet", documents())
    assert list(tmp_path.iterdir()) == []


def test_the_ground_is_imported_without_the_heavy_libraries() -> None:
    names = [path.stem for path in Path(documents.__path__[0]).glob("[a-z]*.py")]
    assert {"shards", "units", "errors", "whole_files", "escaping", "mecab", "model_files"} <= set(names)
    code = (
        f"import sys; from corpus.documents import {', '.join(names)}\n"
        "sys.exit(', '.join(sorted({'torch', 'transformers', 'datasets', 'mecab'} & set(sys.modules))) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
