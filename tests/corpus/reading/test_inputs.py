"""What a run reads: sources with a name and a format, URLs, data sets in the Hub's layout."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpus.config import SourceConfig
from corpus.documents.errors import BadInput
from corpus.documents.shards import read_documents, shard_paths
from corpus.reading import inputs
from corpus.reading.files import to_path
from corpus.reading.hub import HubSet, parse_hub_name
from corpus.reading.inputs import Input, find_inputs, input_state, plan_units
from corpus.reading.read import Record, read_unit

Clean = Callable[..., dict[str, Any]]


def records_of(inputs: list[Input]) -> list[Record]:
    found = [record for unit in plan_units(inputs) for record in read_unit(unit, Counter())]
    assert all(isinstance(record, Record) for record in found), found
    return [record for record in found if isinstance(record, Record)]


def test_a_source_names_its_documents_and_their_format(tmp_path: Path) -> None:
    (tmp_path / "청원.jsonl").write_text(json.dumps({"title": "제목", "content": "본문", "petition_idx": 7}), "utf-8")
    (tmp_path / "plain.txt").write_text("그냥 글", "utf-8")
    source = SourceConfig(inputs=[str(tmp_path / "*.jsonl")], format="petitions")
    found = records_of(find_inputs([str(tmp_path / "plain.txt")], {"PETITION": source}, "text"))
    assert [(r.id, r.source, r.text) for r in found] == [
        ("plain.txt@0", "plain", "그냥 글"), ("7", "PETITION", "제목\n본문"),
    ]  # fmt: skip


def test_a_file_that_two_patterns_find_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("글", "utf-8")
    source = SourceConfig(inputs=[str(tmp_path)])
    assert [item.source for item in find_inputs([str(tmp_path / "a.txt")], {"BOOKS": source}, "text")] == [None]


def test_an_unknown_format_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"sources\.MODU\.format.*'moduu'.*cc100.*modu.*namuwiki"):
        find_inputs([], {"MODU": SourceConfig(inputs=[str(tmp_path)], format="moduu")}, "text")


@pytest.fixture
def hub_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "set"
    folder.mkdir()
    for shard in range(3):
        table = pa.table(
            {"text": [f"{shard}의 {n}번 글이다." for n in range(4)], "id": [f"{shard}{n}" for n in range(4)]}
        )
        pq.write_table(table, folder / f"train-0000{shard}-of-00003.parquet")
    pq.write_table(pa.table({"text": ["검증 글이다."]}), folder / "validation-00000-of-00001.parquet")
    return folder


def test_a_data_set_is_read_by_its_shards(hub_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    inputs = find_inputs([f"hub:{hub_folder}", f"hub:{hub_folder}#validation"], {}, "text")
    assert len(list(plan_units(inputs))) == 4
    found = records_of(inputs)
    assert [record.text for record in found][:5] == [*(f"0의 {n}번 글이다." for n in range(4)), "1의 0번 글이다."]
    assert found[5].id == "11" and found[-1].id == f"hub:{hub_folder}#validation#0.1"
    assert found[-1].source == "set"
    before = input_state(inputs[0])
    pq.write_table(pa.table({"text": ["다른 글이다."]}), hub_folder / "train-00000-of-00003.parquet")
    assert input_state(inputs[0]) != before


def test_a_data_set_without_the_column_or_that_is_not_there_is_bad_input(hub_folder: Path) -> None:
    with pytest.raises(BadInput, match=r"no column 'body'.*text, id"):
        records_of(find_inputs([f"hub:{hub_folder}"], {}, "body"))
    with pytest.raises(BadInput, match="cannot be opened"):
        records_of(find_inputs([f"hub:{hub_folder}#nothing"], {}, "text"))


def test_errors_of_a_storage_package_are_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    class Bucket:
        def is_file(self) -> bool:
            raise RuntimeError("Unable to locate credentials")

    monkeypatch.setattr("corpus.reading.files.to_path", lambda name: Bucket())
    with pytest.raises(BadInput, match=r"s3://a/b: cannot be accessed \(Unable to locate credentials\); check"):
        find_inputs(["s3://a/b"], {}, "text")


def test_names_of_data_sets_hold_configuration_revision_and_split() -> None:
    assert parse_hub_name("hub:wikimedia/wikipedia:20231101.ko@main#test") == HubSet(
        "wikimedia/wikipedia", "20231101.ko", "main", "test"
    )
    assert parse_hub_name("hub:a/b") == HubSet("a/b", None, None, "train")
    with pytest.raises(BadInput, match="hub:NAME"):
        parse_hub_name("hub:")


@pytest.mark.parametrize("workers", [1, 2])
def test_urls_are_read_like_files(tmp_path: Path, clean: Clean, monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    monkeypatch.setattr(inputs, "UNIT_BYTES", 200)
    folder = tmp_path / "texts"
    folder.mkdir()
    for name in "ab":
        lines = [json.dumps({"text": f"{name}의 {n}번째 글이 여기 있다."}) + "\n" for n in range(30)]
        (folder / f"{name}.jsonl").write_text("".join(lines), "utf-8")
    clean(folder, out="files")
    url = to_path(f"file://{folder}/*.jsonl")
    assert not isinstance(url, Path)
    clean(url, out="urls", workers=workers)
    texts = [
        [d.sentences for s in shard_paths(tmp_path / o / "documents") for d in read_documents(s)]
        for o in ("files", "urls")
    ]
    assert texts[0] == texts[1] and len(texts[0]) == 60


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *arguments: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path))) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()


def test_a_file_behind_http_is_read(tmp_path: Path, server: str) -> None:
    (tmp_path / "a.txt").write_text("첫 글\n\n둘째 글", "utf-8")
    assert [record.text for record in records_of(find_inputs([f"{server}/a.txt"], {}, "text"))] == ["첫 글", "둘째 글"]
    with pytest.raises(BadInput, match="no such file"):
        find_inputs([f"{server}/b.txt"], {}, "text")


def test_a_url_of_an_unknown_kind_is_one_sentence() -> None:
    with pytest.raises(BadInput, match="cannot open URLs of this kind"):
        find_inputs(["nothing://bucket/a.txt"], {}, "text")
