"""Shards hold each kept document once and in order, for any size of shards."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpus.card.statistics import OTHER_SOURCES
from corpus.documents.atomic_files import read_json
from corpus.documents.shards import read_documents, shard_paths
from tests.corpus.conftest import Clean
from tests.corpus.test_stage import write_jsonl


@pytest.mark.parametrize("size", [1, 3, 7, 10])
def test_a_unit_is_cut_into_shards_of_whole_documents(tmp_path: Path, clean: Clean, size: int) -> None:
    texts = [f"{n}번 글은 다른 글과 같지 않다." if n % 4 else " <br> " for n in range(10)]
    clean(write_jsonl(tmp_path / "글.jsonl", [{"id": f"{n}", "text": text} for n, text in enumerate(texts)]),
          shard_documents=size)  # fmt: skip
    found = [[document.id for document in read_documents(path)] for path in shard_paths(tmp_path / "out" / "documents")]
    kept = [f"{n}" for n in range(10) if n % 4]
    assert found == [kept[at : at + size] for at in range(0, len(kept), size)]


def test_documents_of_rare_sources_are_written_as_those_of_one(
    tmp_path: Path, clean: Clean, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("corpus.card.statistics.MAX_SOURCES", 3)
    rows = [{"text": f"{n}번 글은 다른 글과 같지 않다.", "source": f"/{n}" if n % 2 else "책"} for n in range(10)]
    clean(write_jsonl(tmp_path / "글.jsonl", rows), shard_documents=4)
    found = [
        document.source for path in shard_paths(tmp_path / "out" / "documents") for document in read_documents(path)
    ]
    assert found == ["책", OTHER_SOURCES] * 5
    assert read_json(tmp_path / "out" / "statistics.json", "")["sources"].keys() == {*found}
    assert "6 sources: those with less than" in caplog.text
