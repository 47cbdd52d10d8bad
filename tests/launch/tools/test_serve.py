"""``malmoi serve``: real HTTP requests get the answers of the commands; what is refused, and how."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch

import malmoi
from finetune.registry import TASKS
from launch.tools.serve import MAX_BYTES, MAX_CHARACTERS, MAX_ITEMS
from tests.command import run_command
from tests.finetune.conftest import build_tiny_encoder

TITLES = ["푸른들시 예산안 처리", "[속보] 가람팀 3연승", "", "{윤슬} 금리 인하"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kept model of KLUE-NER with random weights, which labels sentences and also finds names."""
    home = tmp_path_factory.mktemp("kept")
    encoder, tokenizer = build_tiny_encoder(home, TITLES)
    torch.manual_seed(1)
    TASKS["klue-ner"].model(encoder, tokenizer).net.save_pretrained(home / "model")  # type: ignore[operator]
    tokenizer.save_pretrained(home / "model")
    settings = {"format": 1, "task": "klue-ner", "protocol": "malmoi", "max_tokens": 32}
    (home / "model" / "malmoi.json").write_text(json.dumps(settings), "utf-8")
    return home / "model"


@pytest.fixture(scope="module")
def port(folder: Path) -> Iterator[int]:
    """The port of the command in its own process, whose patience is a second."""
    patient = "import launch.local_server as s; s.PATIENCE = 1.0; import malmoi; malmoi.main()"
    command = [sys.executable, "-c", patient, "serve", str(folder), "--names", str(folder), "--port", "0"]
    environment = os.environ | {"PYTHONPATH": str(Path(malmoi.__file__).parent)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        log = ""
        for line in process.stderr:
            log += line
            if found := re.search(r"at http://127\.0\.0\.1:(\d+)", line):
                break
        assert process.poll() is None and found, log
        yield int(found[1])
        process.send_signal(signal.SIGINT)
        assert "Traceback" not in process.stderr.read()
        assert process.wait(30) in (0, 130, -signal.SIGINT)


def ask(port: int, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    content = None if body is None else body if isinstance(body, bytes) else json.dumps(body)
    kind = {} if body is None else {"Content-Type": "application/json"}
    with suppress(BrokenPipeError):  # the server has answered before all of a large body was sent
        connection.request("GET" if body is None else "POST", path, content, kind | headers)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def test_a_text_gets_the_answer_of_the_command(port: int, folder: Path, tmp_path: Path, capfd: Any) -> None:
    (tmp_path / "in.txt").write_text("\n".join(TITLES) + "\n", "utf-8")
    run_command(capfd, "predict", "ner", str(folder), str(tmp_path / "in.txt"), str(tmp_path / "out.jsonl"))
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    status, reply = ask(port, "/predict", {"texts": TITLES})
    assert status == 200
    assert [{"line": n, **result} for n, result in enumerate(reply["results"], 1)] == lines


def test_personal_data_has_the_names_of_the_model(port: int, folder: Path) -> None:
    text = "담당 김하늘, 010-0123-4567"
    _, reply = ask(port, "/pii", {"texts": [text]})
    spans = malmoi.find_pii(text, ["TEL", "PERSON"], names=folder)
    assert reply == {"results": [{"text": text, "spans": [[s.start, s.end, s.type] for s in spans]}]}


def test_the_documentation_names_the_paths(port: int) -> None:
    status, schema = ask(port, "/openapi.json")
    assert status == 200 and schema["paths"].keys() == {"/predict", "/pii", "/health"}
    assert "klue-ner" in schema["paths"]["/predict"]["post"]["summary"]
    assert ask(port, "/health") == (200, {"status": "ok"})


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/predict", {}, 422, "texts: missing"),
        ("/predict", {"texts": []}, 422, "must not be empty"),
        ("/predict", {"texts": ["비"] * (MAX_ITEMS + 1)}, 422, f"at most {MAX_ITEMS}"),
        ("/predict", {"texts": ["가" * (MAX_CHARACTERS + 1)]}, 422, "at most 10,000"),
        ("/predict", {"texts": [{"text": "가" * MAX_CHARACTERS}]}, 422, "at most 10,000"),
        ("/predict", {"texts": [{"title": "비"}]}, 422, "'text'"),
        ("/predict", {"texts": [{"text": "\ud800"}]}, 422, "surrogate"),
        ("/predict", {"texts": ["\ud800"]}, 422, "surrogate"),
        ("/predict", {"texts": "비"}, 422, "must be a list"),
        ("/predict", {"texts": ["비"], "file": "/etc/passwd"}, 422, "file: "),
        ("/predict", b"{", 422, "JSON"),
        ("/predict", b'{"texts": ["' + b"a" * MAX_BYTES + b'"]}', 413, "larger than"),
        ("/pii", {"texts": [["a", "b"]]}, 422, "takes texts"),
        ("/upload", {"texts": ["비"]}, 404, "Not Found"),
    ],
)
def test_what_is_not_allowed_gets_one_sentence(port: int, path: str, body: Any, status: int, words: str) -> None:
    found, reply = ask(port, path, body)
    assert found == status, reply
    assert isinstance(reply["detail"], str) and words in reply["detail"]


def test_other_web_sites_cannot_use_it(port: int) -> None:
    batch = {"texts": ["비"]}
    assert ask(port, "/predict", batch, Origin="https://evil.example")[0] == 403
    assert ask(port, "/predict", batch, Origin="null")[0] == 403
    assert ask(port, "/predict", batch, Host="evil.example")[0] == 400
    assert ask(port, "/predict", batch, **{"Content-Type": "text/plain"})[0] == 422  # a browser would not ask first
    assert ask(port, "/predict", batch, Origin=f"http://127.0.0.1:{port}")[0] == 200


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (b"", b""),
        (b"POST /predict HTTP/1.1\r\nHost: 127", b""),
        (b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{", b"408"),
    ],
)
def test_a_connection_that_sends_nothing_more_is_closed(port: int, sent: bytes, answer: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(sent)
        begin, received = time.monotonic(), b""
        while data := connection.recv(4096):
            received += data
    assert answer in received and time.monotonic() - begin < 20


def test_a_taken_port_and_a_wrong_model_are_one_sentence(folder: Path, tmp_path: Path, capfd: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = str(other.getsockname()[1])
        run_command(capfd, "serve", str(folder), "--port", taken).refused(f"port {taken}: cannot be used", "--port")
    run_command(capfd, "serve", str(tmp_path), "--port", "0").refused("not a fine-tuned malmoi model")


def test_a_missing_extra_is_one_sentence(folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    monkeypatch.setattr("launch.errors.find_spec", lambda name: None)
    run_command(capfd, "serve", str(folder)).refused("pip install 'malmoi[serve]'")
