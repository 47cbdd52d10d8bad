"""``malmoi tokenizer extend``: files or a corpus in, one new folder out, and wrong use told in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from huggingface_hub import constants
from transformers import AutoTokenizer

from corpus.documents.shards import Document
from tests.command import run_command
from tests.pretrain.conftest import invented_documents, write_corpus, write_tokenizer

TEXT = "윤슬은 바다에서 도자기마을을 보았다.\n가람은 도자기마을에서 노래했다.\n\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder: a base vocabulary that knows the characters of a text, and the text."""
    monkeypatch.chdir(tmp_path)
    write_tokenizer(Path("base"), [*invented_documents(9), Document("text", "", tuple(TEXT.split("\n")))])
    Path("text.txt").write_text(TEXT * 6, "utf-8")
    return tmp_path


def extend(capfd: pytest.CaptureFixture[str], *arguments: str):
    return run_command(capfd, "tokenizer", "extend", *arguments, "--workers", "1")


def test_files_become_a_longer_folder_and_a_table(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = extend(capfd, "base", "text.txt", "--pieces", "3", "--out", "new/folder")
    assert outcome.code == 0, outcome.errors
    found = json.loads(Path("new/folder/extension.json").read_text("utf-8"))
    assert "도자기" in outcome.output and "now encoded differently" in outcome.output
    assert 1 <= len(found["pieces"]) <= 3 and found["text"]["eojeols"] == 42
    assert not list(Path("new").glob("*.partial")) and not Path("new/folder/work").exists()


def test_a_run_or_its_corpus_is_text_too(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_corpus(Path("run/corpus"), invented_documents(30), shards=2)
    for number, name in enumerate(("run", "run/corpus")):
        assert extend(capfd, "base", name, "--pieces", "2", "--out", f"out{number}").code == 0
    one, two = ({path.name: path.read_bytes() for path in Path(name).iterdir()} for name in ("out0", "out1"))
    assert one == two and "extension.json" in one
    extend(capfd, "base", "run", "text.txt", "--out", "new").refused("a corpus folder stands alone")


def test_a_base_may_be_on_the_hub(place: Path, capfd: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    extend(capfd, "someone/absent", "text.txt", "--out", "new").refused("someone/absent: no tokenizer")
    monkeypatch.setattr("finetune.encoder._read_tokenizer", lambda name: AutoTokenizer.from_pretrained("base"))
    outcome = extend(capfd, "someone/wordpiece", "text.txt", "--pieces", "3", "--out", "new")
    assert outcome.code == 0, outcome.errors
    old, new = (Path(folder, "vocab.txt").read_text("utf-8") for folder in ("base", "new"))
    assert new.startswith(old) and new != old


def test_wrong_use_is_one_sentence_and_leaves_nothing(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Path("empty.txt").write_text("\n", "utf-8")
    Path("taken").mkdir()
    Path("taken/file").write_text("", "utf-8")
    Path("unigram").mkdir()
    unigram = {"version": "1.0", "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["a", -1.0]]}}
    Path("unigram/tokenizer.json").write_text(json.dumps(unigram), "utf-8")
    before = sorted(place.rglob("*"))
    extend(capfd, "base", "text.txt", "--out", "taken").refused("taken", "exists already")
    extend(capfd, "absent", "text.txt", "--out", "new").refused("absent", "no tokenizer here")
    extend(capfd, "unigram", "text.txt", "--out", "new").refused("unigram", "only WordPiece")
    extend(capfd, "base", "absent.txt", "--out", "new").refused("absent.txt")
    assert extend(capfd, "base", "text.txt", "--pieces", "0", "--out", "new").code == 2
    assert sorted(place.rglob("*")) == before
    extend(capfd, "base", "empty.txt", "--out", "new").refused("no words in the text")
    assert not Path("new").exists()
