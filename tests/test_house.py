"""House rules that a reader would otherwise have to check: sizes of files and functions, nothing left unfinished."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("corpus", "tokenizer", "pretrain", "finetune", "launch", "benchmarks", "tests")
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 40


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_stay_small(path: Path) -> None:
    text = path.read_text("utf-8")
    assert len(text.splitlines()) <= MAX_FILE_LINES
    functions = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    long = {f.name: _body_lines(f) for f in functions if _body_lines(f) > MAX_FUNCTION_LINES}
    assert not long


def test_every_module_says_what_it_is_for() -> None:
    modules = [path for path in FILES if path.read_text("utf-8").strip()]
    silent = [str(path) for path in modules if not ast.get_docstring(ast.parse(path.read_text("utf-8")))]
    assert not silent


def _body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of code from `def` to the end, the docstring not counted."""
    first = function.body[0]
    has_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    docstring = (first.end_lineno or 0) - first.lineno + 1 if has_docstring else 0
    return (function.end_lineno or 0) - function.lineno + 1 - docstring
