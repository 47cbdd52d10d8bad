"""Imports between source files, for tests of the structure (``test_house``) and for mutation tests."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WHEEL = ("corpus", "tokenizer", "pretrain", "finetune", "launch")
PACKAGES = (*WHEEL, "benchmarks")


@cache
def source_files() -> tuple[str, ...]:
    """All modules of the packages and ``malmoi.py``, as paths below the repository."""
    files = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    return tuple(path.relative_to(ROOT).as_posix() for path in (*files, ROOT / "malmoi.py"))


def module_name(file: str) -> str:
    """The dotted name of a source file."""
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imported_names(node: ast.AST) -> Iterator[str]:
    """Dotted names that a syntax tree imports, in functions too, but not those for type checkers alone."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            yield from (name for statement in child.orelse for name in imported_names(statement))
        elif isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and child.module:
            yield from (child.module, *(f"{child.module}.{alias.name}" for alias in child.names))
        elif not isinstance(child, ast.expr):  # which holds no import
            yield from imported_names(child)


@cache
def imports() -> Mapping[str, frozenset[str]]:
    """The source files that each source file imports."""
    files = {module_name(file): file for file in source_files()}
    graph = {}
    for file in source_files():
        names = set(imported_names(ast.parse((ROOT / file).read_text("utf-8"))))
        graph[file] = frozenset(files[name] for name in names & files.keys() if files[name] != file)
    return graph


def cycles() -> list[list[str]]:
    """Groups of files that import one another, directly or through others."""
    reachable = {file: _reachable(file) for file in imports()}
    groups = {frozenset(other for other in reachable[file] if file in reachable[other]) for file in imports()}
    return sorted(sorted(group) for group in groups if group)


def _reachable(file: str) -> set[str]:
    seen: set[str] = set()
    waiting = [file]
    while waiting:
        new = imports()[waiting.pop()] - seen
        seen |= new
        waiting += new
    return seen
