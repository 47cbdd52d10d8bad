"""What the HTTP servers of ``malmoi serve`` and ``malmoi demo`` share: limits of requests and connections.

Any web site that a user visits can send requests to this machine, so requests from pages of other origins and requests
under other host names (DNS rebinding) are refused, and no request can fill memory or keep a connection without using
it. Import this module only when a server starts: it needs uvicorn and starlette.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

LOOPBACK = ("127.0.0.1", "localhost", "::1")
MAX_CONNECTIONS = 64
PATIENCE = 10.0  # seconds, for a request and for its body


class RequestLimits:
    """ASGI middleware that answers with an error, in place of the application, to requests that are not allowed.

    Args:
        hosts: names under which this server may be addressed; empty: any.
        max_bytes: of the body of a request, which is read as a whole before the application sees it.
        refused: parts of paths that do not exist for clients.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str], max_bytes: int, refused: Collection[str] = ()) -> None:
        self.app, self.hosts, self.max_bytes, self.refused = app, hosts, max_bytes, refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 400, 403, 404, 408 or 413 with one sentence."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        problem, body = self._problem_of(scope), b""
        if problem is None:
            try:
                async with asyncio.timeout(PATIENCE):
                    body = await self._read(receive)
            except TimeoutError:
                problem = (408, f"the body did not arrive within {PATIENCE:.0f} seconds")
            if len(body) > self.max_bytes:
                problem = (413, f"the request is larger than {self.max_bytes:,} bytes")
        if problem is not None:
            answer = JSONResponse({"detail": problem[1]}, problem[0], {"connection": "close"})
            return await answer(scope, receive, send)
        first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return first.pop() if first else await receive()

        await self.app(scope, replay, send)

    def _problem_of(self, scope: Scope) -> tuple[int, str] | None:
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        if self.hosts and urlsplit(f"//{host}").hostname not in self.hosts:
            return 400, f"this server does not answer under the name {host!r:.80}"
        if origin is not None and urlsplit(origin).netloc != host:
            return 403, "requests from pages of other web sites are refused"
        if any(part in scope["path"] for part in self.refused):
            return 404, "not found"
        length = headers.get("content-length", "0")
        return (413, f"larger than {self.max_bytes:,} bytes") if int(length) > self.max_bytes else None

    async def _read(self, receive: Receive) -> bytes:
        """The body, or the part of it that shows that it is too large."""
        body, has_more = bytearray(), True
        while has_more and len(body) <= self.max_bytes:
            message = await receive()
            body += message.get("body", b"")
            has_more = message.get("more_body", False)
        return bytes(body)


class ImpatientProtocol(H11Protocol):
    """HTTP of uvicorn; closes a connection on which no request arrives for ``PATIENCE`` seconds."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._watch()

    def _watch(self) -> None:
        self.loop.call_later(PATIENCE, self._close_if_idle, self.cycle)

    def _close_if_idle(self, cycle: Any) -> None:
        if self.cycle is cycle and (cycle is None or cycle.response_complete):
            self.transport.close()
        elif not self.transport.is_closing():
            self._watch()
