"""`malmoi status` prints lines for people, and JSON on request."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import run_command


def test_status_prints_json_only_on_request(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run" / "corpus").mkdir(parents=True)
    head = {"stage": "corpus", "settings": {}, "inputs": {}, "key": "sha256:0", "seconds": 4.0}
    (tmp_path / "run" / "corpus" / "manifest.json").write_text(json.dumps(head), "utf-8")
    status = run_command(capfd, "status", str(tmp_path / "run"))
    assert status.code == 0 and not status.output.startswith("{")
    assert json.loads(run_command(capfd, "status", str(tmp_path / "run"), "--json").output)["run"]
