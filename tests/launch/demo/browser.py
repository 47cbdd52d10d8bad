"""A headless Chromium driven over its own pipe: pages are opened, typed into, read and photographed.

The DevTools protocol over two file descriptors (``--remote-debugging-pipe``) is JSON separated by NUL bytes, so only
the browser is needed.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe")  # fmt: skip
PATIENCE = 60.0  # seconds
NAVIGATED = -32000  # error of a question to a page that was left


def find_browser() -> str | None:
    """The Chromium program, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Page:
    """One tab. ``requests``: the requested addresses; ``problems``: errors in its console."""

    def __init__(self, to_browser: Any, from_browser: Any) -> None:
        self._out, self._in, self._number, self._session = to_browser, from_browser, 0, ""
        self.requests: list[str] = []
        self.problems: list[str] = []

    def attach(self) -> None:
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **settings: Any) -> dict[str, Any]:
        self._number += 1
        order: dict[str, Any] = {"id": self._number, "method": method, "params": settings}
        if self._session:
            order["sessionId"] = self._session
        self._out.write(json.dumps(order).encode() + b"\0")
        self._out.flush()
        while (event := self._next()).get("id") != self._number:
            self._note(event)
        if event.get("error", {}).get("code") == NAVIGATED:
            return {"result": {}}  # the page is being reloaded
        assert "error" not in event, event
        return dict(event["result"])

    def _next(self) -> dict[str, Any]:
        raw = bytearray()
        while (byte := self._in.read(1)) != b"\0":
            assert byte, "the browser is gone"
            raw += byte
        return dict(json.loads(raw))

    def _note(self, event: dict[str, Any]) -> None:
        method, event = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(event["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.problems.append(str(event["exceptionDetails"]))
        elif method == "Log.entryAdded" and event["entry"]["level"] == "error":
            self.problems.append(f"{event['entry']['text']} {event['entry'].get('url', '')}")
        elif method == "Page.javascriptDialogOpening":
            self.problems.append(f"a dialog: {event['message']}")

    def resize(self, width: int, height: int, *, dark: bool = False) -> None:
        """Set the size of the window; below 500 pixels it is a phone."""
        phone = width < 500
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2, mobile=phone)
        scheme = "dark" if dark else "light"
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, address: str) -> None:
        self.ask("Page.navigate", url=address)

    def evaluate(self, script: str) -> Any:
        return self.ask("Runtime.evaluate", expression=script, returnByValue=True)["result"].get("value")

    def wait_for(self, script: str) -> None:
        """Wait until a JavaScript expression is true."""
        end = time.monotonic() + PATIENCE
        while not self.evaluate(f"!!({script})"):
            assert time.monotonic() < end, f"never true: {script}; {self.problems}"
            time.sleep(0.05)

    def type(self, text: str) -> None:
        """Replace the text in the box, as a keyboard does."""
        self.evaluate("document.querySelector('#sentence textarea').select()")
        self.evaluate("document.querySelector('#sentence textarea').focus()")
        self.ask("Input.insertText", text=text)

    def photograph(self, file: Path) -> None:
        """Write the full page as PNG."""
        shot = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def browse(program: str, home: Path) -> Iterator[Page]:
    """A tab of a browser with its files in ``home``; the browser is stopped afterwards."""
    reads_orders, orders = os.pipe()
    answers, writes_answers = os.pipe()
    line = f'exec "$0" "$@" 3<&{reads_orders} 4>&{writes_answers}'
    process = subprocess.Popen(
        ["bash", "-c", line, program, *FLAGS, f"--user-data-dir={home}"],
        pass_fds=(reads_orders, writes_answers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(reads_orders)
    os.close(writes_answers)
    with os.fdopen(orders, "wb") as to_browser, os.fdopen(answers, "rb") as from_browser:
        page = Page(to_browser, from_browser)
        try:
            page.attach()
            yield page
        finally:
            process.kill()
            process.wait()
