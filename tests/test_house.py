"""House rules: size of packages, files, functions and docs, structure of imports, number of settings and commands.

A new feature is paid for by deleting. Later issues may raise the limits of packages up to the size guide of the design.
"""

from __future__ import annotations

import ast
import statistics
import tomllib
import types
import typing
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main
from pydantic import BaseModel

from launch.cli import app
from launch.recipe import Recipe
from tests.source_graph import PACKAGES, ROOT, WHEEL, cycles, imports, source_files

MAX_LINES = {
    "corpus": 11_500,
    "tokenizer": 3_000,
    "pretrain": 8_000,
    "finetune": 21_000,
    "launch": 10_136,  # above the guide of 10,000: init, serve, embed, benchmark, and clusters as they are
    "benchmarks": 5_000,
    "wheel": 53_862,
}
MAX_SETTINGS, MAX_OPTIONS, MAX_COMMANDS = 200, 230, 46
MAX_DOCS_WORDS, MAX_PAGE_WORDS, MAX_README_LINES = 29_450, 1_800, 120
MAX_FILE_LINES, MAX_FUNCTION_LINES = 400, 40
MEDIAN_FILE_LINES = range(120, 251)
SLIVER_LINES = (
    60  # a shorter module with one importer moves into the importer, unless it is a table or has a reason below
)
SLIVERS = {
    "corpus/quality/han_kana.py": "one quality rule per file, found by its name",
    "corpus/quality/length.py": "one quality rule per file, found by its name",
    "corpus/quality/mojibake.py": "one quality rule per file, found by its name",
    "finetune/tasks/re/published.py": "every task folder has the same files",
}

VAGUE_NAMES = {"found", "given", "kept", "counted", "Found", "Given", "Way", "Base", "Measures", "Look"}
"""Style guide, section 2: a name says what it holds."""

FOLDERS = (*PACKAGES, "tests")
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
PAGES = sorted((ROOT / "docs").rglob("*.md"))


def lines_of(file: str) -> int:
    return len((ROOT / file).read_text("utf-8").splitlines())


@pytest.mark.parametrize("folder", FOLDERS)
def test_files_and_functions_stay_small_and_every_module_has_a_docstring(folder: str) -> None:
    problems = []
    for path in (path for path in FILES if path.is_relative_to(ROOT / folder)):
        text, name = path.read_text("utf-8"), path.relative_to(ROOT)
        tree = ast.parse(text)
        if (lines := len(text.splitlines())) > MAX_FILE_LINES:
            problems.append(f"{name}: {lines} lines")
        if text.strip() and not ast.get_docstring(tree):
            problems.append(f"{name}: no docstring")
        long = {f.name: _body_lines(f) for f in _functions(tree) if _body_lines(f) > MAX_FUNCTION_LINES}
        problems += [f"{name}: {function} has {lines} lines" for function, lines in long.items()]
    assert not problems


def test_names_say_what_they_hold() -> None:
    problems = []
    for path in (path for path in FILES if not path.is_relative_to(ROOT / "tests")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = {getattr(node, field, None) for field in ("id", "arg", "name")}
            problems += [f"{path.relative_to(ROOT)}:{node.lineno}: {name}" for name in names & VAGUE_NAMES]  # type: ignore[attr-defined]
    assert not problems


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """All functions, inner ones too; no expression contains one."""
    nodes: list[ast.AST] = [tree]
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        nodes += [inner for inner in ast.iter_child_nodes(node) if not isinstance(inner, ast.expr)]


@pytest.mark.parametrize("name", MAX_LINES)
def test_packages_stay_within_their_number_of_lines(name: str) -> None:
    folders = WHEEL if name == "wheel" else (name,)
    lines = sum(lines_of(file) for file in source_files() if file.partition("/")[0] in folders)
    assert lines <= MAX_LINES[name]


@pytest.mark.parametrize("package", PACKAGES)
def test_the_median_file_has_a_readable_length(package: str) -> None:
    lines = [lines_of(file) for file in source_files() if file.startswith(f"{package}/")]
    assert round(statistics.median(count for count in lines if count)) in MEDIAN_FILE_LINES


def test_no_files_import_one_another_in_a_cycle() -> None:
    assert not cycles()


def test_a_short_module_with_one_importer_is_part_of_the_importer() -> None:
    users: dict[str, list[str]] = {file: [] for file in source_files()}
    for file, imported in imports().items():
        for other in imported:
            users[other].append(file)
    slivers = [
        file
        for file in source_files()
        if Path(file).name not in ("__init__.py", "__main__.py")
        and len(users[file]) == 1
        and lines_of(file) < SLIVER_LINES
        and not _is_table(file)
    ]
    assert not set(slivers) - SLIVERS.keys(), "merge into the importer"
    assert not SLIVERS.keys() - set(source_files()), "no longer needed in SLIVERS"


def _is_table(file: str) -> bool:
    """Whether a module defines values only: no functions, no classes."""
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    return not any(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in tree.body)


@pytest.mark.parametrize("package", WHEEL)
def test_every_package_has_a_layers_contract(package: str) -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    contracts = [contract for contract in config["contracts"] if contract["type"] == "layers"]
    inside = [c for c in contracts if package in c.get("containers", ()) or _starts_with(c["layers"], f"{package}.")]
    assert inside


def _starts_with(layers: list[str], prefix: str) -> bool:
    return any(layer.strip(" ()").startswith(prefix) for layer in layers)


@pytest.mark.parametrize("page", ["README.md", "README.ko.md"])
def test_the_readme_is_short(page: str) -> None:
    assert lines_of(page) <= MAX_README_LINES


def test_a_recipe_has_few_settings() -> None:
    assert len(list(settings_of(Recipe))) <= MAX_SETTINGS


def test_the_command_line_has_few_commands_and_options() -> None:
    options = [p.name for _, c in commands() for p in c.params if p.param_type_name == "option" and p.name != "help"]
    assert len(commands()) <= MAX_COMMANDS
    assert len(options) <= MAX_OPTIONS


def settings_of(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Dotted keys of all settings below a section."""
    for name, field in model.model_fields.items():
        sections = list(dict.fromkeys(_sections(field.annotation)))
        if not sections:
            yield f"{prefix}{name}"
        for section in sections:
            yield from settings_of(section, f"{prefix}{name}.")


def _sections(annotation: Any) -> Iterator[type[BaseModel]]:
    if typing.get_origin(annotation) in (typing.Union, types.UnionType, dict, tuple, list, typing.Annotated):
        for inner in typing.get_args(annotation):
            yield from _sections(inner)
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation


@cache
def commands() -> tuple[tuple[str, Any], ...]:
    """All visible commands with their full names; a hidden "build" is the default of its group and counts."""

    def walk(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        if inner := getattr(command, "commands", None):
            for name, sub in inner.items():
                yield from walk(sub, (*path, name))
        elif not command.hidden or path[-1] == "build":
            yield " ".join(path), command

    return tuple(walk(typer.main.get_command(app), ()))


def test_docs_stay_short() -> None:
    assert sum(len(page.read_text("utf-8").split()) for page in PAGES) <= MAX_DOCS_WORDS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_stays_short(page: Path) -> None:
    assert len(page.read_text("utf-8").split()) <= MAX_PAGE_WORDS


def _body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of code from `def` to the end, without the docstring."""
    first = function.body[0]
    has_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    docstring = (first.end_lineno or 0) - first.lineno + 1 if has_docstring else 0
    return (function.end_lineno or 0) - function.lineno + 1 - docstring
