"""``malmoi tokenizer stats`` and ``malmoi tokenizer extend``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from huggingface_hub import constants
from transformers import AutoTokenizer

from corpus.documents.shards import Document
from tests.command import run_command
from tests.pretrain.conftest import invented_documents, write_corpus, write_tokenizer

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch
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


def test_files_of_text_extend_a_tokenizer(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = extend(capfd, "base", "text.txt", "--pieces", "3", "--out", "new/folder")
    assert outcome.code == 0, outcome.errors
    found = json.loads(Path("new/folder/extension.json").read_text("utf-8"))
    assert "도자기" in outcome.output and "now encoded differently" in outcome.output
    assert 1 <= len(found["pieces"]) <= 3 and found["text"]["eojeols"] == 42
    assert not list(Path("new").glob("*.partial")) and not Path("new/folder/work").exists()


def test_a_run_or_its_corpus_can_be_the_text(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_corpus(Path("run/corpus"), invented_documents(30), shards=2)
    for number, name in enumerate(("run", "run/corpus")):
        assert extend(capfd, "base", name, "--pieces", "2", "--out", f"out{number}").code == 0
    one, two = ({path.name: path.read_bytes() for path in Path(name).iterdir()} for name in ("out0", "out1"))
    assert one == two and "extension.json" in one
    extend(capfd, "base", "run", "text.txt", "--out", "new").refused("give either one corpus folder or files of text")


def test_the_base_can_be_on_the_hub(place: Path, capfd: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    extend(capfd, "someone/absent", "text.txt", "--out", "new").refused("someone/absent: no tokenizer")
    monkeypatch.setattr("finetune.encoder.loading._read_tokenizer", lambda name: AutoTokenizer.from_pretrained("base"))
    outcome = extend(capfd, "someone/wordpiece", "text.txt", "--pieces", "3", "--out", "new")
    assert outcome.code == 0, outcome.errors
    old, new = (Path(folder, "vocab.txt").read_text("utf-8") for folder in ("base", "new"))
    assert new.startswith(old) and new != old


def test_wrong_use_is_one_sentence_and_leaves_no_files(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
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


def test_an_unreadable_line_stops_the_statistics(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n", "utf-8")
    (tmp_path / "a.jsonl").write_text('{"text": "눈"}\n{"text"\n', "utf-8")
    result = run_command(capfd, "tokenizer", "stats", "vocab.txt", "a.jsonl")
    assert result.code == 2
    assert "a.jsonl, line 2" in result.errors


def test_statistics_of_a_bare_vocabulary(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "새", "강좌", "##를", "연다", "."]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces) + "\n", "utf-8")
    (tmp_path / "a.txt").write_text("새 강좌를 연다.", "utf-8")
    result = run_command(capfd, "tokenizer", "stats", "vocab.txt", "a.txt")
    assert result.code == 0, result.errors
    assert "1.667" in result.output  # five pieces in three eojeols


def test_statistics_of_several_texts_and_gold_files(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "새", "강좌", "##를", "연다", "."]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces) + "\n", "utf-8")
    (tmp_path / "news.txt").write_text("새 강좌를 연다.", "utf-8")
    (tmp_path / "talk.jsonl").write_text('{"text": "새 강좌를ㅋ 연다."}\n', "utf-8")
    (tmp_path / "a.conllu").write_text("1\t강좌를\t강좌+를" + "\t_" * 7 + "\n", "utf-8")
    (tmp_path / "dp.tsv").write_text("1\t강좌를\t강좌 를\tNNG+JKO\t0\tNP_OBJ\n", "utf-8")
    options = ["--gold", "a.conllu", "--gold", "dp.tsv", "--json"]
    result = run_command(capfd, "tokenizer", "stats", "vocab.txt", "news.txt", "talk.jsonl", *options)
    assert result.code == 0, result.errors
    [found] = json.loads(result.output)["tokenizers"]
    assert [on["text"] for on in (found["whole"], *found["texts"])] == ["all 2 texts", "news", "talk"]
    assert [on["fit"]["unknown_hangul"] for on in (found["whole"], *found["texts"])] == [1, 0, 1]
    assert [(on["file"], on["convention"]) for on in found["golds"]] == [("a", "CoNLL-U"), ("dp", "KLUE-DP")]
    result = run_command(capfd, "tokenizer", "stats", "vocab.txt", "news.txt", "news.txt")
    assert (result.code, "this text is given twice" in result.errors) == (2, True)
