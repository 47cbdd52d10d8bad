"""A local OpenAI-compatible server that fails in the ways a test asks for, and counts requests."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

Messages = list[dict[str, Any]]


class Reply(NamedTuple):
    """What the server does with one request: ``text`` in a well-formed answer, or a failure.

    ``failure``: "status" (with ``headers``), "cut" (half the announced bytes), "hang up" (nothing at all), "no json",
    "other json", "no choices", "refusal", "error" (``text`` is the JSON of the error).
    """

    text: str | None = None
    failure: str = ""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    delay: float = 0.0


Script = Callable[[str, int], Reply]  # the last user message, how often it was asked before


class Server:
    """``requests``: the last user message of each, in order; ``answered``: those that got a whole answer."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[str] = []
        self.keys: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.answered: Counter[str] = Counter()
        self.open = self.most_open = 0
        self.lock = threading.Lock()
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.http.daemon_threads = True

    def note(self, asked: str, body: dict[str, Any], key: str) -> int:
        """Count a request; returns how often the same was asked before."""
        with self.lock:
            before = self.requests.count(asked)
            self.requests.append(asked)
            self.bodies.append(body)
            self.keys.append(key)
            self.open += 1
            self.most_open = max(self.most_open, self.open)
        return before

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.http.server_address[1]}/v1"


@contextmanager
def serving(script: Script) -> Iterator[Server]:
    """The server, while the block runs."""
    server = Server(script)
    thread = threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.http.shutdown()
        server.http.server_close()
        thread.join()


def completion(text: str | None, **message: Any) -> dict[str, Any]:
    """A chat completion as the interface documents it."""
    return {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "test",
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text, **message}}
        ],
        "usage": {"prompt_tokens": 20, "completion_tokens": len(text or ""), "total_tokens": 20 + len(text or "")},
    }  # fmt: skip


def body_of(reply: Reply) -> bytes:
    if reply.failure == "no json":
        return b"<html>Bad gateway</html>"
    if reply.failure == "other json":
        return b'"ok"'
    if reply.failure == "no choices":
        return json.dumps({**completion(""), "choices": []}).encode()
    if reply.failure == "refusal":
        return json.dumps(completion(None, refusal=reply.text)).encode()
    if reply.failure == "error":
        return json.dumps({"error": json.loads(reply.text or "{}")}).encode()
    if reply.failure == "status":
        return json.dumps({"error": {"message": reply.text or "no", "type": "error", "code": None}}).encode()
    return json.dumps(completion(reply.text)).encode()


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked = [message for message in body["messages"] if message["role"] == "user"][-1]["content"]
            before = server.note(asked, body, self.headers.get("Authorization", ""))
            try:
                reply = server.script(asked, before)
                time.sleep(reply.delay)
                self._send(asked, reply)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True
            finally:
                with server.lock:
                    server.open -= 1

        def _send(self, asked: str, reply: Reply) -> None:
            self.close_connection = reply.failure in ("cut", "hang up")
            if reply.failure == "hang up":
                return
            body = body_of(reply)
            self.send_response(reply.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            for name, value in reply.headers:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if reply.failure == "cut" else body)
            self.wfile.flush()
            if not reply.failure:
                with server.lock:
                    server.answered[asked] += 1

    return Handler
