"""A tokenizer to a server that answers as the Hub does: what is sent, and what is said where it fails."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from corpus.documents.errors import BadInput
from launch.errors import LaunchError
from launch.tools.push import find_repository, upload
from tests.launch.fake_hub import TOKEN, Hub, reach
from tokenizer.building.alphabet import ALWAYS_PIECES
from tokenizer.building.export import build_vocabulary, export
from tokenizer.config import TokenizerConfig
from tokenizer.words import decompose

PIECES = [*ALWAYS_PIECES, *map(decompose, ("한국", "##국"))]
ROOT_FILES = ["README.md", "special_tokens_map.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt"]
CARD = "---\nlanguage: ko\n---\n\n# 낱말 조각\n"


def push(folder: Path, name: str, **settings: Any) -> str:
    return upload(find_repository(folder), name, **settings)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tokenizer with jamo fallback as a run writes it, with other files that must not be published."""
    return make_folder(tmp_path / "tokenizer", jamo_fallback=True)


def make_folder(folder: Path, *, jamo_fallback: bool) -> Path:
    config = TokenizerConfig(vocab_size=2_000, unused=1, jamo_fallback=jamo_fallback)
    folder.mkdir()
    export(build_vocabulary(PIECES, config), config, CARD, folder)
    for name in (
        "manifest.json",
        "statistics.json",
        ".hidden",
        "README.md.partial",
        "work/README.md",
        "work/vocab.txt",
    ):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("stays at home", "utf-8")
    return folder


def test_exactly_the_repositorys_files_arrive_byte_for_byte(hub: Hub, folder: Path) -> None:
    url = push(folder, "someone/words")

    stored = hub.files["someone/words", "main"]
    assert sorted(stored) == sorted([".gitattributes", *ROOT_FILES])
    assert all(stored[name] == (folder / name).read_bytes() for name in ROOT_FILES)
    assert url.startswith(f"{hub.url}/someone/words/commit/")
    assert hub.private == {"someone/words": False}


def test_what_was_pushed_loads_and_encodes_alike(hub: Hub, folder: Path, tmp_path: Path) -> None:
    push(folder, "someone/words")
    for name, content in hub.files["someone/words", "main"].items():
        (tmp_path / "copy" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "copy" / name).write_bytes(content)

    assert AutoTokenizer.from_pretrained(tmp_path / "copy").tokenize("뷁") == ["ᄇ", "##ᅰ", "##ᆰ"]


def test_a_second_push_replaces_the_first(hub: Hub, folder: Path) -> None:
    push(folder, "someone/words")
    (folder / "README.md").write_text(CARD + "\n둘째\n", "utf-8")
    push(folder, "someone/words")
    stored = hub.files["someone/words", "main"]
    assert stored["README.md"].decode().endswith("둘째\n")


def test_private_is_asked_for_and_never_lost(hub: Hub, folder: Path) -> None:
    push(folder, "someone/hidden", private=True)
    push(folder, "someone/hidden", private=True)
    push(folder, "someone/open")
    before = dict(hub.files["someone/open", "main"])
    (folder / "README.md").write_text(CARD + "secret", "utf-8")

    assert hub.private == {"someone/hidden": True, "someone/open": False}
    with pytest.raises(LaunchError, match="someone/open: this repository is public"):
        push(folder, "someone/open", private=True)
    assert hub.files["someone/open", "main"] == before


@pytest.mark.parametrize("name", ["a/b/c", "some one/words", "someone/wor--ds", "", "someone/" + "x" * 100])
def test_an_impossible_name_is_reported(hub: Hub, folder: Path, name: str) -> None:
    with pytest.raises(LaunchError, match="expected NAME/REPOSITORY"):
        push(folder, name)
    assert hub.requests == []


def test_a_refused_token_is_reported_and_never_shown(
    hub: Hub, folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    wrong = "hf_wrongToken"
    monkeypatch.setenv("HF_TOKEN", wrong)
    with pytest.raises(
        LaunchError, match=r"someone/words: the Hub refuses the access token \(401.*hf auth login"
    ) as raised:
        push(folder, "someone/words")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    hub.refuses["/commit/"] = (403, f"token {TOKEN} may not write")
    with pytest.raises(LaunchError, match=r"\(403, token hf_… may not write\)") as second:
        push(folder, "someone/words")

    for text in (str(raised.value), str(second.value), caplog.text):
        assert wrong not in text and TOKEN not in text
    assert raised.value.__suppress_context__ and second.value.__suppress_context__


def test_other_answers_of_the_hub_are_passed_on(hub: Hub, folder: Path) -> None:
    hub.refuses["/commit/"] = (409, "A commit has happened since.")
    with pytest.raises(LaunchError, match=r"the Hub answered 409, A commit has happened since;"):
        push(folder, "someone/words")
    hub.refuses = {"validate-yaml": (400, "Invalid metadata")}
    with pytest.raises(LaunchError, match=r"the Hub rejects README\.md"):
        push(folder, "someone/words")


def test_a_missing_network_is_reported(monkeypatch: pytest.MonkeyPatch, hub: Hub, folder: Path) -> None:
    closed = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    closed.server_close()
    reach(monkeypatch, f"http://127.0.0.1:{closed.server_port}")
    with pytest.raises(LaunchError, match="the Hub cannot be reached"):
        push(folder, "someone/words")
    reach(monkeypatch, hub.url)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(LaunchError, match="HF_HUB_OFFLINE"):
        push(folder, "someone/words")
    assert hub.requests == []


def edit_json(path: Path, **changes: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **changes}), "utf-8")


def swap_lines(path: Path) -> None:
    lines = path.read_text("utf-8").splitlines()
    path.write_text("\n".join([*lines[:-2], lines[-1], lines[-2]]) + "\n", "utf-8")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: shutil.rmtree(f), "no such folder"),
        (lambda f: (f / "README.md").unlink(), "no README.md; run"),
        (lambda f: (f / "tokenizer_config.json").write_text("{"), "not readable as JSON"),
        (lambda f: (f / "special_tokens_map.json").write_text("[]"), "expected a JSON object"),
        (lambda f: (f / "tokenizer_config.json").unlink(), "no tokenizer_config.json"),
        (lambda f: (f / "tokenizer.json").write_text('{"model": 1}'), "does not load"),
        (lambda f: swap_lines(f / "vocab.txt"), "vocab.txt and tokenizer.json differ in 2 entries"),
        (lambda f: (f / "vocab.txt").write_text("가\n"), "no entry"),
        (lambda f: edit_json(f / "tokenizer_config.json", strip_accents=False), "encodes differently"),
        (lambda f: edit_json(f / "tokenizer_config.json", do_lower_case=True), "encodes differently"),
        (
            lambda f: edit_json(f / "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast"),
            "earlier version",
        ),
    ],
)
def test_a_damaged_folder_is_never_sent(hub: Hub, folder: Path, damage: Callable[[Path], object], message: str) -> None:
    damage(folder)

    with pytest.raises((BadInput, LaunchError), match=message):
        push(folder, "someone/words")
    assert hub.requests == []
