"""A server on this machine that answers as the Hugging Face Hub does, as far as uploads need it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

TOKEN = "hf_" + "inventedForTests"


@dataclass
class Hub:
    """What a Hub keeps: visibility of repositories, files by repository and branch; and the requests it saw."""

    url: str = ""
    private: dict[str, bool] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)  # "models" or "datasets"
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
        if repository not in self.private or kind != self.kinds[repository]:
            return 404, {"error": "not found"}
        if not rest:
            return 200, {"id": repository, "private": self.private[repository]}
        return self.in_repository(repository, rest[0], rest[1].split("?")[0], body)

    def create(self, wanted: dict[str, Any]) -> tuple[int, Any]:
        repository = f"{wanted['organization']}/{wanted['name']}"
        exists = repository in self.private
        if not exists:
            self.private[repository] = wanted["visibility"] == "private"
            self.kinds[repository] = f"{wanted.get('type') or 'model'}s"
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


def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A Hub on a port of this machine, which the library is led to while the test runs."""
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
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", url)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
