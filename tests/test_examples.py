"""The notebooks in ``examples``: small, without outputs, and their cells run on the finished demo."""

from __future__ import annotations

import ast
import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.test_docs import need_demo

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
MAX_BYTES, MAX_SECONDS = 8_000, 120


def cells(path: Path) -> list[str]:
    notebook = json.loads(path.read_text("utf-8"))
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_small_and_has_no_outputs(path: Path) -> None:
    notebook = json.loads(path.read_text("utf-8"))
    assert notebook["nbformat"] == 4 and path.stat().st_size <= MAX_BYTES
    for cell in notebook["cells"]:
        assert cell["cell_type"] == "markdown" or (cell["outputs"], cell["execution_count"]) == ([], None)
    assert all(map(ast.parse, cells(path)))


@pytest.mark.demo
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_on_the_demo(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need_demo()
    monkeypatch.chdir(EXAMPLES)
    begin, names = time.monotonic(), dict[str, Any]()
    for cell in cells(path):
        exec(compile(cell, path.name, "exec"), names)
    assert time.monotonic() - begin < MAX_SECONDS
