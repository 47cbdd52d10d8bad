"""Every regular expression of the packages: compiled in a module, held by its records, or written inside a function."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

PACKAGES = ("corpus", "tokenizer", "finetune", "launch")
METHODS = frozenset({"search", "match", "fullmatch", "finditer", "findall", "split", "sub", "subn"})
ANCHORED = frozenset({"match", "fullmatch"})
ROOT = Path(__file__).resolve().parents[2]
MAX_DEPTH = 5


@dataclass(frozen=True, slots=True)
class Found:
    """A pattern and the methods it is called by, all of ``METHODS`` where that cannot be read off the source."""

    pattern: re.Pattern[Any]
    methods: frozenset[str]

    def run(self, text: str) -> None:
        """Apply it to all of ``text`` as the packages do: a search runs to the end, a match starts at the beginning."""
        subject = text.encode("utf-8", "surrogatepass") if isinstance(self.pattern.pattern, bytes) else text
        if not self.methods <= ANCHORED:
            for _ in self.pattern.finditer(subject):
                pass
        if "match" in self.methods:
            self.pattern.match(subject)
        if "fullmatch" in self.methods:
            self.pattern.fullmatch(subject)


@cache
def sources() -> dict[str, ast.Module]:
    """The source of every module by its name."""
    paths = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py") if path.stem != "__main__")
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}
    return {name: ast.parse(path.read_text("utf-8")) for name, path in names.items()}


def all_patterns() -> dict[str, Found]:
    """Patterns by "module.NAME" or "module:line", each pattern once."""
    found: dict[str, Found] = {}
    seen: set[tuple[Any, int]] = set()
    trees = sources()
    called = _calls(trees)
    for name, tree in trees.items():
        if not any(isinstance(node, ast.Import) and node.names[0].name == "re" for node in ast.walk(tree)):
            continue  # patterns are compiled where re is imported, so most modules need not be loaded
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as error:  # of an optional library
            if (error.name or "").split(".")[0] in PACKAGES:
                raise
            continue
        for place, pattern, methods in (*_held_by(module, called), *_written_in(name, tree)):
            if (pattern.pattern, pattern.flags) not in seen:
                seen.add((pattern.pattern, pattern.flags))
                found[place] = Found(pattern, methods)
    return found


def _calls(trees: Mapping[str, ast.Module]) -> dict[str, set[str]]:
    """Methods called on each upper-case name, in any module; "other" where the name is used in another way."""
    called: dict[str, set[str]] = {}
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                called.setdefault(node.value.id, set()).add(node.attr)
        attributes = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in attributes:
                called.setdefault(node.id, set()).add("other")
    return called


def _held_by(
    module: ModuleType, called: Mapping[str, set[str]]
) -> Iterator[tuple[str, re.Pattern[Any], frozenset[str]]]:
    for name, value in list(vars(module).items()):
        if not name.startswith("__"):
            for place, pattern in _inside(value, 0):
                methods = called.get(name, set()) if not place else set()
                is_known = methods and methods <= METHODS
                yield f"{module.__name__}.{name}{place}", pattern, frozenset(methods if is_known else METHODS)


def _inside(value: Any, depth: int) -> Iterator[tuple[str, re.Pattern[Any]]]:
    if isinstance(value, re.Pattern):
        yield "", value
    elif depth < MAX_DEPTH and not isinstance(value, str | bytes | type | ModuleType):
        for key, part in _parts(value):
            for place, pattern in _inside(part, depth + 1):
                yield f"{key}{place}", pattern


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from ((f"[{key!r}]", part) for key, part in list(value.items())[:500] if not isinstance(part, str))
    elif isinstance(value, tuple | list | frozenset | set):
        names = getattr(value, "_fields", None)
        yield from ((f".{names[n]}" if names else f"[{n}]", part) for n, part in enumerate(list(value)[:500]))
    elif is_dataclass(value):
        yield from ((f".{field.name}", getattr(value, field.name, None)) for field in fields(value))
    elif type(value).__module__.split(".")[0] in PACKAGES and hasattr(value, "__dict__"):
        yield from ((f".{name}", part) for name, part in vars(value).items())


def _written_in(name: str, tree: ast.Module) -> Iterator[tuple[str, re.Pattern[Any], frozenset[str]]]:
    """Patterns given as a literal to a function of ``re``, wherever it is called."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        is_re = isinstance(node.func.value, ast.Name) and node.func.value.id == "re" and node.func.attr in METHODS
        argument = node.args[0]
        if is_re and isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            methods = frozenset({node.func.attr})
            yield f"{name}:{node.lineno}", re.compile(argument.value), methods
