"""Which tests may notice a change of a source line, for ``tests.mutants``.

With the data of a run under coverage, these are the tests that execute the line, those first that share rare words
with it. A line that runs once, at import, gives a value its name: then they are the tests that execute a line with
this name. Without data they are the mirrored test file and further test files of the module, nearest first.
"""

from __future__ import annotations

import ast
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from math import log
from pathlib import Path

from tests.source_graph import PACKAGES, ROOT, imports, module_name, source_files

MAX_TEST_FILES = 8  # of a module, without coverage data
MAX_FILES_OF_A_LINE = 30
MAX_SECONDS_OF_A_LINE = 40.0
FIRST_CASES = 3  # of a test with parameters; its further cases run after the other tests
NEAR_FILES = 4  # run as well if the line runs only at import
FIRST_SECONDS = 3.0  # the fastest tests run first; most mutants end there
RECORDED = "tests/same_results/"  # they notice most changes
READERS = ["tests/test_untrusted.py", "tests/test_settings.py"]  # of sources, and of all defaults
DURATION = re.compile(r"^([\d.]+)s (?:call|setup|teardown) +(tests/.*)$", re.MULTILINE)
TEST_ID = re.compile(r"^(?P<test>tests/.*?)(?: \((?P<part>setup|call|teardown)\))?(?:\|(?P<step>\w*))?$", re.DOTALL)
WORD = re.compile(r"[A-Za-z]\w\w+")
MODULE_NAME = re.compile(rf"(?:{'|'.join(PACKAGES)})(?:\.\w+)+")


class LineTests:
    """The tests that execute a line: coverage data with a context per test, and the log of pytest's durations."""

    def __init__(self, data: Path, log: Path) -> None:
        self._data = sqlite3.connect(data)
        self.seconds: Counter[str] = Counter()
        for seconds, test in DURATION.findall(log.read_text("utf-8")):
            self.seconds[test] += float(seconds)
            self.seconds[_file_of(test)] += float(seconds)
        self._lines: dict[str, Mapping[int, set[str]]] = {}

    def batches(self, module: str, first: int, line: int) -> list[list[str]]:
        """Tests in the order to run them: a few fast ones, then the others; ``first``: where the statement begins."""
        fast, slow, files, total = [], [], set[str](), 0.0
        for test in self.tests_of(module, first, line):
            total += self.seconds[test]
            files.add(_file_of(test))
            if len(files) > MAX_FILES_OF_A_LINE or (total > MAX_SECONDS_OF_A_LINE and (fast or slow)):
                break
            (fast if total < FIRST_SECONDS and len(files) < 4 else slow).append(test)
        is_sure = (fast or slow) and _is_in_function(module, line)
        near = [] if is_sure else [[file] for file in find_tests(module)[:NEAR_FILES]]
        return [*filter(None, (fast, slow)), READERS, *near]

    def tests_of(self, module: str, first: int, line: int) -> list[str]:
        """Ids of the tests that execute a line.

        Those of the mirrored file and of recorded results first, then those that share rare words with the statement,
        then the fastest.
        A file means all of its tests: one of its fixtures executes the line.
        """
        lines = self._of_file(module)
        tests = next((lines[at] for at in range(line, first - 1, -1) if at in lines), set[str]())
        if not _is_in_function(module, line):
            tests = tests.union(*(self._of_file(name).get(at, ()) for name, at in uses(module, first)))
        tests = {test for test in tests if (ROOT / _file_of(test)).is_file()}  # the data may be older than the tests
        return self._in_order(tests, module, _words_of_code(module, first, line))

    def _in_order(self, tests: set[str], module: str, words: frozenset[str]) -> list[str]:
        """Tests in the order of ``tests_of``, but further cases of a test with parameters last."""
        folder, _, name = module.rpartition("/")
        strong = (RECORDED, f"tests/{folder}/test_{name}")
        shared = {test: _words_of_test(test) & words for test in tests}
        counts = Counter(word for found in shared.values() for word in found)
        rarity = {test: sum(log(len(tests) / counts[word]) for word in found) for test, found in shared.items()}
        ranked = sorted(tests, key=lambda test: (not test.startswith(strong), -rarity[test], self.seconds[test], test))
        cases, first, later = Counter[str](), list[str](), list[str]()
        for test in ranked:
            cases[_function_of(test)] += 1
            (first if cases[_function_of(test)] <= FIRST_CASES else later).append(test)
        return first + later

    def _of_file(self, name: str) -> Mapping[int, set[str]]:
        if name not in self._lines:
            self._lines[name] = lines = defaultdict[int, set[str]](set)
            query = (
                "select context, numbits from line_bits join file on file.id = file_id"
                " join context on context.id = context_id where path like ?"
            )
            for context, bits in self._data.execute(query, ("%/" + name,)):
                if match := TEST_ID.match(context):
                    tests = {match["test"]}
                    if "setup" in (match["part"], match["step"]):
                        tests.add(_file_of(match["test"]))
                    for at, byte in enumerate(bits):
                        for bit in range(8):
                            if byte >> bit & 1:
                                lines[8 * at + bit] |= tests
        return self._lines[name]


def _file_of(test: str) -> str:
    return test.partition("::")[0]


def _function_of(test: str) -> str:
    return test.partition("[")[0]


@cache
def _words_of_test(test: str) -> frozenset[str]:
    return frozenset(_words_by_function(_file_of(test)).get(_function_of(test).rpartition("::")[2], ()))


@cache
def _words_by_function(file: str) -> Mapping[str, set[str]]:
    functions = [n for n in ast.walk(_tree(file)) if isinstance(n, ast.FunctionDef)] if (ROOT / file).is_file() else []
    return {function.name: set(WORD.findall(ast.unparse(function))) for function in functions}


def _words_of_code(module: str, first: int, line: int) -> frozenset[str]:
    """Words of some lines, and the names of the functions and classes around them."""
    around = [n for n in ast.walk(_tree(module)) if getattr(n, "lineno", line + 1) <= line <= n.end_lineno]
    names = [n.name for n in around if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    texts = (ROOT / module).read_text("utf-8").splitlines()[first - 1 : line]
    return frozenset(WORD.findall(" ".join((*texts, *names))))


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse((ROOT / module).read_text("utf-8"))


def _is_in_function(module: str, line: int) -> bool:
    """Whether a line is in the body of a function, which runs at every call."""
    functions = (node for node in ast.walk(_tree(module)) if isinstance(node, ast.FunctionDef))
    return any(function.body[0].lineno <= line <= function.end_lineno for function in functions)


def uses(module: str, line: int) -> Iterator[tuple[str, int]]:
    """Files and lines with a name that the statement at ``line`` defines, or with a name made from such a one."""
    files = [module, *(name for name, imported in imports().items() if module in imported)]
    waiting, seen = [_names_defined(module, line)], set[str]()
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.FunctionDef) and node.lineno <= line < node.body[0].lineno:  # a default
            yield from ((module, at) for at in range(node.lineno, node.end_lineno + 1))
    while waiting:
        if name := waiting.pop() - seen:
            seen |= name
            pattern = re.compile(rf"\b(?:{'|'.join(sorted(name))})\b")
            for file in files:
                for at, text in enumerate((ROOT / file).read_text("utf-8").splitlines(), 1):
                    if pattern.search(text):
                        yield file, at
                        if not _is_in_function(file, at):
                            waiting.append(_names_defined(file, at))


def _names_defined(module: str, line: int) -> set[str]:
    """Names of the smallest assignment or function around a line, outside of functions."""
    around = [n for n in ast.walk(_tree(module)) if getattr(n, "lineno", line + 1) <= line <= n.end_lineno]
    for node in reversed(around):
        match node:
            case ast.FunctionDef(name=name):
                return {name}
            case ast.Assign(targets=targets):
                return {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                return {name}
    return set()


def imported_modules(path: Path) -> set[str]:
    """Dotted names that a file imports or names in a string, at any depth, with their parents."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.update((node.module, *(f"{node.module}.{alias.name}" for alias in node.names)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and MODULE_NAME.fullmatch(node.value):
            names.update((node.value, node.value.rpartition(".")[0]))
    return names


@cache
def importers() -> Mapping[str, set[str]]:
    """The files, tests included, that import each module."""
    modules = {module_name(name): name for name in source_files()}
    users = defaultdict(set)
    tests = [path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("*.py")]
    for name in (*source_files(), *tests):
        for imported in imported_modules(ROOT / name) & modules.keys():
            users[modules[imported]].add(name)
    return users


def find_tests(module: str) -> list[str]:
    """Test files of a module: the mirrored one, its importers, its neighbors, those of its importers and so on.

    A module with settings has the test of all settings too, one without importers all test files of its folder.
    """
    folder, _, name = module.rpartition("/")
    mirrored = ROOT / "tests" / folder / f"test_{name}"
    tests = [mirrored.relative_to(ROOT).as_posix()] if mirrored.is_file() else []
    tests += ["tests/test_settings.py"] if " = Field(" in (ROOT / module).read_text("utf-8") else []
    tests += [test for test in sorted(filter(_is_test, importers()[module]), key=_size) if test not in tests]
    level, seen, names = {module}, {module}, _definitions(module)
    folder_tests = {path.relative_to(ROOT).as_posix() for path in mirrored.parent.glob("test_*.py")}
    neighbors = {test for test in folder_tests if _mentions(test, names)}
    while len(tests) < MAX_TEST_FILES and (level := set().union(*(importers()[user] for user in level)) - seen):
        seen |= level
        near = sorted(filter(_is_test, level | neighbors), key=lambda test: (-_mentions(test, names), _size(test)))
        tests += [test for test in near if test not in tests]
    return (tests or sorted(folder_tests, key=lambda test: (-_mentions(test, names), _size(test))))[:MAX_TEST_FILES]


def _is_test(file: str) -> bool:
    return Path(file).name.startswith("test_")


def _size(file: str) -> tuple[int, str]:
    return (ROOT / file).stat().st_size, file


def _definitions(module: str) -> frozenset[str]:
    """Public functions and classes of a module."""
    tree = ast.parse((ROOT / module).read_text("utf-8"))
    return frozenset(n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef) and n.name[0] != "_")


@cache
def _words(file: str) -> frozenset[str]:
    return frozenset(re.findall(r"[A-Za-z]\w+", (ROOT / file).read_text("utf-8")))


def _mentions(test: str, names: frozenset[str]) -> int:
    return len(_words(test) & names)
