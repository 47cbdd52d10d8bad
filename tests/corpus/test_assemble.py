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
def test_a_unit_is_cut_into_shards_of_whole_documents(
    tmp_path: Path, clean: Clean, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corpus.assemble.SHARD_DOCUMENTS", size)
    texts = [f"{n}번 글은 다른 글과 같지 않다." if n % 4 else " <br> " for n in range(10)]
    clean(write_jsonl(tmp_path / "글.jsonl", [{"id": f"{n}", "text": text} for n, text in enumerate(texts)]))
    found = [[document.id for document in read_documents(path)] for path in shard_paths(tmp_path / "out" / "documents")]
    kept = [f"{n}" for n in range(10) if n % 4]
    assert found == [kept[at : at + size] for at in range(0, len(kept), size)]


@pytest.mark.parametrize(("most", "sizes"), [(3, [4, 4, 2]), (4, [3, 3, 3, 1]), (10, [2] * 5)])
def test_shards_are_larger_if_there_would_be_too_many(
    tmp_path: Path, clean: Clean, most: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corpus.assemble.SHARD_DOCUMENTS", 2)
    monkeypatch.setattr("corpus.assemble.MAX_SHARDS", most)
    clean(write_jsonl(tmp_path / "글.jsonl", [{"text": f"{n}번 글은 다른 글과 같지 않다."} for n in range(10)]))
    assert [len(list(read_documents(path))) for path in shard_paths(tmp_path / "out" / "documents")] == sizes


def test_documents_of_rare_sources_are_written_as_those_of_one(
    tmp_path: Path, clean: Clean, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("corpus.card.statistics.MAX_SOURCES", 3)
    monkeypatch.setattr("corpus.assemble.SHARD_DOCUMENTS", 4)
    rows = [{"text": f"{n}번 글은 다른 글과 같지 않다.", "source": f"/{n}" if n % 2 else "책"} for n in range(10)]
    clean(write_jsonl(tmp_path / "글.jsonl", rows))
    found = [
        document.source for path in shard_paths(tmp_path / "out" / "documents") for document in read_documents(path)
    ]
    assert found == ["책", OTHER_SOURCES] * 5
    assert read_json(tmp_path / "out" / "statistics.json", "")["sources"].keys() == {*found}
    assert "6 sources: those with less than" in caplog.text
