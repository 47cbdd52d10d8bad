"""The command in this process: ``malmoi("detect", "a.txt", stdin=…)`` in the test's own folder."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from launch.cli import main

Malmoi = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture
def malmoi(tmp_path: Path) -> Malmoi:
    """Run ``malmoi pii ARGUMENTS``; output and errors as bytes."""

    def run(*arguments: str, stdin: str | bytes = "") -> subprocess.CompletedProcess[bytes]:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(tmp_path)
            patch.setattr(sys, "argv", ["malmoi", "pii", *arguments])
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(data)), "utf-8"))
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            with pytest.raises(SystemExit) as ended:
                main()
        out.flush(), err.flush()
        code = ended.value.code or 0
        return subprocess.CompletedProcess(arguments, code, out.buffer.getvalue(), err.buffer.getvalue())

    return run
