"""Against a server on this machine that answers as the Hub does: what is sent, and what is said where it fails."""

from __future__ import annotations

import base64
import json
import logging
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from transformers import AutoTokenizer

from corpus.documents import BadInput
from tokenizer.config import TokenizerConfig
from tokenizer.export import build_vocabulary, export
from tokenizer.jamo import ALWAYS_KNOWN
from tokenizer.push import check_repository, push

TOKEN = "hf_" + "inventedForTests"
PIECES = [piece for char in (*ALWAYS_KNOWN, "한", "국") for piece in (char, f"##{char}")]
ROOT_FILES = ["README.md", "special_tokens_map.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt"]
PLAIN_FILES = [f"plain/{name}" for name in ROOT_FILES[1:]]
CARD = "---\nlanguage: ko\n---\n\n# 낱말 조각\n"


@dataclass
class Hub:
    """What a Hub keeps: visibility of repositories, files by repository and branch; and the requests it saw."""

    url: str = ""
    private: dict[str, bool] = field(default_factory=dict)
    files: dict[tuple[str, str], dict[str, bytes]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    refuses: dict[str, tuple[int, str]] = field(default_factory=dict)  # by a part of the path

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, Any]:
        self.requests.append(f"{method} {path}")
        for part, (status, message) in self.refuses.items():
            if part in path:
                return status, {"error": message}
        if path == "/api/repos/create":
            return self.create(json.loads(body))
        if path == "/api/validate-yaml":
            return 200, {}
        _, _, kind, owner, name, *rest = path.split("/")
        repository = f"{owner}/{name}"
        if kind != "models" or repository not in self.private:
            return 404, {"error": "not found"}
        if not rest:
            return 200, {"id": repository, "private": self.private[repository]}
        return self.in_repository(repository, rest[0], rest[1].split("?")[0], body)

    def create(self, wanted: dict[str, Any]) -> tuple[int, Any]:
        repository = f"{wanted['organization']}/{wanted['name']}"
        exists = repository in self.private
        if not exists:
            self.private[repository] = wanted["visibility"] == "private"
            self.files[repository, "main"] = {".gitattributes": b""}
        return 409 if exists else 200, {"url": f"{self.url}/{repository}"}

    def in_repository(self, repository: str, what: str, branch: str, body: bytes) -> tuple[int, Any]:
        if what == "branch":
            exists = (repository, branch) in self.files
            self.files.setdefault((repository, branch), dict(self.files[repository, "main"]))
            return 409 if exists else 200, {}
        stored = self.files[repository, branch]
        if what == "tree":
            return 200, [{"type": "file", "path": name, "size": len(stored[name]), "oid": "0"} for name in stored]
        if what == "preupload":
            rows = json.loads(body)["files"]
            return 200, {"files": [{**row, "uploadMode": "regular", "shouldIgnore": False} for row in rows]}
        assert what == "commit"
        for line in body.splitlines():
            operation = json.loads(line)
            if operation["key"] == "file":
                stored[operation["value"]["path"]] = base64.b64decode(operation["value"]["content"])
            elif operation["key"] == "deletedFile":
                del stored[operation["value"]["path"]]
        return 200, {"commitUrl": f"{self.url}/{repository}/commit/{len(self.requests)}", "commitOid": "0" * 40}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    found = Hub()

    class Handler(BaseHTTPRequestHandler):
        def reply(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                status, answer = 401, {"error": "Invalid username or password."}
                found.requests.append(f"{self.command} refused")
            else:
                status, answer = found.answer(self.command, self.path, body)
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else content)

        do_GET = do_POST = do_HEAD = reply

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_port}"
    reach(monkeypatch, found.url)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield found
    server.shutdown()
    server.server_close()


def reach(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", url)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A hardened tokenizer as a run leaves it, with what is not to be published beside it."""
    return make_folder(tmp_path / "tokenizer", hardened=True)


def make_folder(folder: Path, *, hardened: bool) -> Path:
    config = TokenizerConfig(vocab_size=600, unused=1, hardened=hardened)
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
    url = push(folder, "someone/words", token=TOKEN)

    stored = hub.files["someone/words", "main"]
    assert sorted(stored) == sorted([".gitattributes", *ROOT_FILES, *PLAIN_FILES])
    assert all(stored[name] == (folder / name).read_bytes() for name in (*ROOT_FILES, *PLAIN_FILES))
    assert url.startswith(f"{hub.url}/someone/words/commit/")
    assert hub.private == {"someone/words": False}


def test_what_was_pushed_loads_and_encodes_alike(hub: Hub, folder: Path, tmp_path: Path) -> None:
    push(folder, "someone/words", token=TOKEN)
    for name, content in hub.files["someone/words", "main"].items():
        (tmp_path / "copy" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "copy" / name).write_bytes(content)

    assert AutoTokenizer.from_pretrained(tmp_path / "copy").tokenize("한뷁") == ["한", "##ᄇ", "##ᅰ", "##ᆰ"]
    assert AutoTokenizer.from_pretrained(tmp_path / "copy", subfolder="plain").tokenize("한뷁") == ["[UNK]"]


def test_a_second_push_replaces_the_first(hub: Hub, folder: Path, tmp_path: Path) -> None:
    push(folder, "someone/words", token=TOKEN)
    (folder / "README.md").write_text(CARD + "\n둘째\n", "utf-8")
    push(folder, "someone/words", token=TOKEN)
    stored = hub.files["someone/words", "main"]
    assert stored["README.md"].decode().endswith("둘째\n")

    push(make_folder(tmp_path / "plain-one", hardened=False), "someone/words", token=TOKEN)
    assert sorted(stored) == sorted([".gitattributes", *ROOT_FILES])  # no plain/ of the vocabulary before


def test_a_branch_is_made_and_written_to(hub: Hub, folder: Path) -> None:
    for _ in range(2):
        push(folder, "someone/words", revision="v2", token=TOKEN)

    assert list(hub.files["someone/words", "main"]) == [".gitattributes"]
    assert "vocab.txt" in hub.files["someone/words", "v2"]


def test_private_is_asked_for_and_never_lost(hub: Hub, folder: Path) -> None:
    push(folder, "someone/hidden", private=True, token=TOKEN)
    push(folder, "someone/hidden", private=True, token=TOKEN)
    push(folder, "someone/open", token=TOKEN)
    before = dict(hub.files["someone/open", "main"])
    (folder / "README.md").write_text(CARD + "secret", "utf-8")

    assert hub.private == {"someone/hidden": True, "someone/open": False}
    with pytest.raises(BadInput, match="someone/open: is public already"):
        push(folder, "someone/open", private=True, token=TOKEN)
    assert hub.files["someone/open", "main"] == before


@pytest.mark.parametrize("name", ["a/b/c", "some one/words", "someone/wor--ds", "", "someone/" + "x" * 100])
def test_a_name_that_cannot_be_is_told(hub: Hub, folder: Path, name: str) -> None:
    with pytest.raises(BadInput, match="expected NAME/REPOSITORY"):
        push(folder, name, token=TOKEN)
    assert hub.requests == []


def test_a_refused_token_is_told_and_never_shown(hub: Hub, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    wrong = "hf_wrongToken"
    with pytest.raises(BadInput, match=r"someone/words: the Hub refuses the access token \(401.*hf auth login") as told:
        push(folder, "someone/words", token=wrong)
    hub.refuses["/commit/"] = (403, f"token {TOKEN} may not write")
    with pytest.raises(BadInput, match=r"\(403, token hf_… may not write\)") as told_too:
        push(folder, "someone/words", token=TOKEN)

    for text in (str(told.value), str(told_too.value), caplog.text):
        assert wrong not in text and TOKEN not in text
    assert told.value.__suppress_context__ and told_too.value.__suppress_context__


@pytest.mark.parametrize("token", ["", "hf_a b", "hf_secret\n", "hf_한글"])
def test_a_token_that_cannot_be_is_not_sent(hub: Hub, folder: Path, token: str) -> None:
    with pytest.raises(BadInput, match="copy it again") as told:
        push(folder, "someone/words", token=token)
    assert hub.requests == []
    assert "hf_" not in str(told.value)


def test_other_answers_of_the_hub_are_passed_on(hub: Hub, folder: Path) -> None:
    hub.refuses["/commit/"] = (409, "A commit has happened since.")
    with pytest.raises(BadInput, match=r"the Hub answers 409, A commit has happened since;"):
        push(folder, "someone/words", token=TOKEN)
    hub.refuses = {"validate-yaml": (400, "Invalid metadata")}
    with pytest.raises(BadInput, match=r"the Hub takes no such README\.md"):
        push(folder, "someone/words", token=TOKEN)


def test_no_network_is_told(monkeypatch: pytest.MonkeyPatch, hub: Hub, folder: Path) -> None:
    closed = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    closed.server_close()
    reach(monkeypatch, f"http://127.0.0.1:{closed.server_port}")
    with pytest.raises(BadInput, match="the Hub cannot be reached"):
        push(folder, "someone/words", token=TOKEN)
    reach(monkeypatch, hub.url)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(BadInput, match="HF_HUB_OFFLINE"):
        push(folder, "someone/words", token=TOKEN)
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
        (lambda f: (f / "special_tokens_map.json").write_text("[]"), "expected an object"),
        (lambda f: (f / "tokenizer_config.json").unlink(), "no tokenizer_config.json"),
        (lambda f: shutil.rmtree(f / "plain"), "no plain/tokenizer.json, plain/tokenizer_config.json"),
        (lambda f: (f / "plain/vocab.txt").unlink(), "no plain/vocab.txt"),
        (lambda f: (f / "tokenizer.json").write_text('{"model": 1}'), "does not load"),
        (lambda f: swap_lines(f / "vocab.txt"), "vocab.txt and tokenizer.json differ in 2 entries"),
        (lambda f: (f / "vocab.txt").write_text("가\n"), "no entry"),
        (lambda f: edit_json(f / "tokenizer_config.json", tokenizer_class="BertTokenizer"), "encodes otherwise"),
        (lambda f: edit_json(f / "plain/tokenizer_config.json", do_lower_case=True), "encodes otherwise"),
    ],
)
def test_a_damaged_folder_is_never_sent(hub: Hub, folder: Path, damage: Callable[[Path], object], message: str) -> None:
    damage(folder)

    with pytest.raises(BadInput, match=message):
        push(folder, "someone/words", token=TOKEN)
    assert hub.requests == []


def test_vocabularies_of_two_exports_are_told_apart(folder: Path, tmp_path: Path) -> None:
    config = TokenizerConfig(vocab_size=600, unused=2)
    export(build_vocabulary(PIECES, config), config, CARD, folder / "plain")

    with pytest.raises(BadInput, match=r"vocab\.txt there and in plain/ differ"):
        check_repository(folder)
