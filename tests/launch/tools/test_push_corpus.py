"""A corpus as a data set: ``load_dataset`` reads its documents and nothing else, and only those are ever published."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from datasets import load_dataset

from corpus.config import CorpusConfig
from corpus.documents.errors import BadInput
from corpus.documents.shards import read_documents, shard_paths
from corpus.reading.inputs import find_inputs
from corpus.run import CorpusInputs
from corpus.run import run as clean
from launch.errors import LaunchError
from launch.manifest import Head, finish
from launch.tools.push import corpus_repository, find_repository, upload
from tests.launch.fake_hub import Hub

PUBLISHED = ["README.md", "decontamination.json", "statistics.json"]
PHONE = "010-0123-4567"


def make_corpus(run: Path, **settings: Any) -> Path:
    """A finished corpus of 25 documents in three shards, with all other files that a run may write."""
    run.mkdir(parents=True, exist_ok=True)
    texts = [f"{n}번째 글이다. 문의는 {PHONE}로 하세요. <b>오늘</b>은 {n}시에 비가 온다." for n in range(25)]
    lines = [json.dumps({"id": f"글 {n}", "source": "편지", "text": text}) for n, text in enumerate([*texts, texts[0]])]
    (run / "letters.jsonl").write_text("\n".join([*lines, "{broken"]), "utf-8")
    config = CorpusConfig(inputs=[str(run / "letters.jsonl")], **settings)
    folder = run / "corpus"
    folder.mkdir()
    inputs = CorpusInputs(find_inputs(config.inputs, {}, "text"), [])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("corpus.assemble.SHARD_DOCUMENTS", 10)
        counts = clean(config, inputs, folder)
    finish(folder, Head("corpus", config.model_dump(mode="json"), {}), counts, 1.0, 1)
    for name in (".work-0/unit-00000/part.parquet", "toxicity/scores-00000.parquet", ".cache/x.parquet"):
        (folder / name).parent.mkdir(parents=True)
        pq.write_table(pa.table({"text": [PHONE]}), folder / name)
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_corpus(tmp_path_factory.mktemp("made") / "letters", card={"licence": "cc-by-sa-4.0"})


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "runs" / "letters" / "corpus"))


def push(folder: Path, name: str = "someone/letters", *, with_personal_data: bool = False, **settings: Any) -> str:
    repository = corpus_repository(folder, with_personal_data=with_personal_data)
    return upload(repository, name, **settings)


def shards_of(folder: Path) -> list[str]:
    return [f"documents/{path.name}" for path in shard_paths(folder / "documents")]


def as_data_set(folder: Path, tmp_path: Path) -> list[dict[str, Any]]:
    found = load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))
    assert list(found) == ["train"]
    assert found["train"].column_names == ["id", "source", "sentences"]
    return list(found["train"])


def documents_of(folder: Path) -> list[dict[str, Any]]:
    found = [document for shard in shard_paths(folder / "documents") for document in read_documents(shard)]
    return [{"id": d.id, "source": d.source, "sentences": list(d.sentences)} for d in found]


def test_the_folder_is_a_data_set_of_its_documents_in_order(folder: Path, tmp_path: Path) -> None:
    assert len(shards_of(folder)) == 3
    assert {"dropped", "changed", "quarantine", "toxicity"} <= {path.name for path in folder.iterdir()}
    assert as_data_set(folder, tmp_path) == documents_of(folder)


def test_the_card_says_what_the_hub_asks_for(folder: Path) -> None:
    head = yaml.safe_load((folder / "README.md").read_text("utf-8").split("---\n")[1])
    assert head["license"] == "cc-by-sa-4.0"
    assert head["language"] == ["ko"]
    assert head["size_categories"] == ["n<1K"]
    assert head["pretty_name"].startswith("Korean text, ")


def test_only_documents_card_and_counts_arrive_byte_for_byte(hub: Hub, folder: Path) -> None:
    url = push(folder)
    stored = hub.files["someone/letters", "main"]
    assert sorted(stored) == sorted([".gitattributes", *PUBLISHED, *shards_of(folder)])
    assert all(stored[name] == (folder / name).read_bytes() for name in (*PUBLISHED, *shards_of(folder)))
    assert hub.kinds == {"someone/letters": "datasets"}
    assert url.startswith(f"{hub.url}/")
    assert not any(PHONE.encode() in content for content in stored.values())


def test_what_was_pushed_is_the_same_data_set(hub: Hub, folder: Path, tmp_path: Path) -> None:
    push(folder)
    for name, content in hub.files["someone/letters", "main"].items():
        (tmp_path / "copy" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "copy" / name).write_bytes(content)
    assert as_data_set(tmp_path / "copy", tmp_path) == documents_of(folder)


def test_a_smaller_corpus_replaces_a_larger_one(hub: Hub, folder: Path, tmp_path: Path) -> None:
    push(folder)
    smaller = make_corpus(tmp_path / "smaller", max_documents_per_file=12)
    push(smaller)
    assert len(shards_of(smaller)) == 2
    stored = hub.files["someone/letters", "main"]
    assert sorted(stored) == sorted([".gitattributes", *PUBLISHED, *shards_of(smaller)])


def test_private_is_heeded(hub: Hub, folder: Path) -> None:
    push(folder, private=True)
    assert hub.private == {"someone/letters": True}
    push(folder, "someone/open")
    with pytest.raises(LaunchError, match="someone/open: this repository is public"):
        push(folder, "someone/open", private=True)


def test_kept_personal_data_is_published_only_when_asked_for(hub: Hub, tmp_path: Path) -> None:
    kept = make_corpus(tmp_path / "kept", pii={"mode": "keep"})
    with pytest.raises(LaunchError, match=r"personal data was kept .* --with-personal-data"):
        push(kept)
    assert hub.requests == []
    push(kept, with_personal_data=True)
    assert "documents/shard-00000.parquet" in hub.files["someone/letters", "main"]


def grow(folder: Path) -> None:
    shutil.copy(folder / "documents" / "shard-00000.parquet", folder / "documents" / "shard-00003.parquet")


def link(path: Path) -> None:
    path.symlink_to(path.rename(path.parent.parent / "elsewhere"))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "manifest.json").rename(f / "started.json"), "is not finished"),
        (lambda f: (f / "manifest.json").write_text('{"stage": "tokenizer", "key": "k"}'), "not from the corpus stage"),
        (lambda f: (f / "manifest.json").write_text('{"stage": "corpus", "key": "k"}'), "not from the corpus stage"),
        (lambda f: shutil.rmtree(f), "no such folder"),
        (lambda f: (f / "README.md").unlink(), r"README\.md is missing; run"),
        (lambda f: (f / "README.md").write_text("# ours"), "expected data_files"),
        (lambda f: (f / "README.md").write_text("---\nconfigs: [{path: '*'}]\n---\n"), "cannot be read"),
        (lambda f: (f / "statistics.json").write_text("{}"), "not the statistics"),
        (lambda f: (f / "documents" / "shard-00001.parquet").unlink(), "have 15 documents, .* says 25"),
        (grow, "have 35 documents"),
        (lambda f: cut(f / "documents" / "shard-00001.parquet"), ": not complete"),
        (
            lambda f: pq.write_table(pa.table({"text": [PHONE]}), f / "documents" / "shard-00002.parquet"),
            "expected the columns",
        ),
        (lambda f: link(f / "statistics.json"), "is a link"),
        (lambda f: link(f / "documents" / "shard-00001.parquet"), "is a link"),
        (lambda f: (f / "documents" / "notes.txt").write_text("mine"), "not a file of malmoi"),
    ],
)
def test_an_unfinished_or_damaged_corpus_is_never_sent(
    hub: Hub, folder: Path, damage: Callable[[Path], object], message: str
) -> None:
    damage(folder)
    with pytest.raises((LaunchError, BadInput), match=message):
        upload(find_repository(folder), "someone/letters")
    assert hub.requests == []


def test_a_run_is_refused_with_the_folders_that_can_be_pushed(folder: Path) -> None:
    with pytest.raises(LaunchError, match=f"nothing to publish here; name one of {folder}"):
        find_repository(folder.parent)
