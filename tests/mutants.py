"""Mutation testing: change one operator or constant at a time and run the tests of the changed module.

    make mutants                                        120 mutants, drawn by seed from the packages of the wheel
    python -m tests.mutants --count 30 --seed 3 corpus finetune/tasks

The script draws mutants from all source files; the chance of a file is proportional to its lines of code. For each
mutant it runs the mirrored test file, then further test files of the module, nearest first, until one fails. It
prints the survivors and the share that was killed. It works on copies of the tree, without the shared data. A
mutant whose tests do not end in time also counts as killed. ``fixtures/same_mutants.txt`` lists changes that no
caller can see, each with a reason; they are not drawn.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import multiprocessing
import os
import re
import resource
import shutil
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import NamedTuple, NoReturn

import pytest

from tests.source_graph import PACKAGES, ROOT, WHEEL, module_name, source_files

SAME = ROOT / "tests" / "fixtures" / "same_mutants.txt"
COPIED = (*PACKAGES, "tests", "docs", "malmoi.py", "pyproject.toml", "README.md")
MIN_KILLED = 0.92
MAX_TEST_FILES = 8  # per module
MAX_TEST_SECONDS = 40  # processor time of a test file; no further file is run after this time
MAX_MEMORY_BYTES = 8 << 30
FAILED_NAME = "failed-tests.txt"
LIBRARIES = (  # imported once; every test run is a fork of this process
    "numpy", "pyarrow.parquet", "pydantic", "hypothesis.strategies", "pytest", "sklearn.metrics", "scipy.stats",
    "rich.progress", "seqeval.metrics", "tokenizers", "datasets", "safetensors.torch", "torch", "transformers.trainer",
    "typer", "yaml",
    "transformers.models.bert.modeling_bert", "transformers.models.roberta.modeling_roberta",
)  # fmt: skip

OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}  # fmt: skip
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}


# equal JSON; our own lists of equal length; figures copied from the paper
UNSEEN_KEYWORDS = ("ensure_ascii", "strict", "paper_dev", "dev_examples")
SKIPPED = (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom)  # other tests check messages


class Mutant(NamedTuple):
    """One change of a module: its number among all changes, its line and a description."""

    module: str
    number: int
    line: int
    change: str


def mutants_of(module: str, text: str) -> list[Mutant]:
    """Every mutant of a module in source order, except those in ``same_mutants.txt``."""
    same = same_mutants()
    mutants = []
    for number, (node, statement, field, value) in enumerate(_all_changes(ast.parse(text))):
        before, place, kept = ast.unparse(node), ast.unparse(statement).partition("\n")[0], getattr(node, field)
        setattr(node, field, value)
        change = f"{_one_line(before)} → {_one_line(ast.unparse(node))}    in: {place}"
        if change not in same:
            mutants.append(Mutant(module, number, node.lineno, change))
        setattr(node, field, kept)
    return mutants


def mutated(mutant: Mutant, text: str) -> str:
    """The source of the module after the change."""
    tree = ast.parse(text)
    node, _, field, value = next(islice(_all_changes(tree), mutant.number, None))
    setattr(node, field, value)
    return ast.unparse(tree)


@cache
def same_mutants() -> dict[str, str]:
    """Changes without a visible effect, and the reason. An entry names its statement, not its file: code may move."""
    changes_whys = [line.rpartition(" | ")[::2] for line in SAME.read_text("utf-8").splitlines()]
    return dict(changes_whys)


def _code(node: ast.AST, statement: ast.stmt | None = None) -> Iterator[tuple[ast.expr | ast.stmt, ast.stmt]]:
    """The nodes below that decide what is computed, with their statements: no annotations, messages or log calls."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, SKIPPED):
                continue
            if isinstance(child, ast.Call) and ast.unparse(child.func).startswith("log."):
                continue
            if isinstance(child, ast.keyword) and child.arg in UNSEEN_KEYWORDS:
                continue
            inner = child if isinstance(child, ast.stmt) else statement
            if isinstance(child, ast.expr | ast.stmt) and inner:
                yield child, inner
            yield from _code(child, inner)


def _all_changes(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, ast.stmt, str, object]]:
    """A node, its statement, and a field of the node with its changed value."""
    for node, statement in _code(tree):
        for field, value in _changes(node):
            yield node, statement, field, value


def _changes(node: ast.AST) -> Iterator[tuple[str, object]]:
    """Possible changes of a node: a field and its changed value."""
    match node:
        case ast.Compare(ops=ops):
            for at, operator in enumerate(ops):
                yield "ops", [*ops[:at], OPERATORS[type(operator)](), *ops[at + 1 :]]
        case ast.BinOp(left=left, op=operator, right=right):
            literal = (ast.JoinedStr, ast.List, ast.Tuple)
            texts = [isinstance(side, literal) or isinstance(getattr(side, "value", 0), str) for side in (left, right)]
            if type(operator) in OPERATORS and not any(texts):
                yield "op", OPERATORS[type(operator)]()
        case ast.BoolOp(op=operator):
            yield "op", OPERATORS[type(operator)]()
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "operand", ast.UnaryOp(ast.Not(), operand)
        case ast.UnaryOp(op=ast.USub()):
            yield "op", ast.UAdd()
        case ast.Constant(value=bool(value)):
            yield "value", not value
        case ast.Constant(value=int(value)):
            yield "value", value + 1
        case ast.Constant(value=float(value)):
            yield "value", 2 * value or 1.0
        case ast.Call(func=ast.Name(id=name)) if name in CALLS:
            yield "func", ast.Name(CALLS[name], ast.Load())
        case ast.If(test=ast.Name() | ast.Call() | ast.Attribute() as test) | ast.While(test=ast.Name() as test):
            yield "test", ast.UnaryOp(ast.Not(), test)


def _one_line(code: str) -> str:
    first, _, rest = code.partition("\n")
    return first + " …" * bool(rest)


@cache
def _mutants_of_file(name: str) -> tuple[int, list[Mutant]]:
    """Lines of code of a file, and its mutants."""
    text = (ROOT / name).read_text("utf-8")
    return sum(bool(line.strip()) for line in text.splitlines()), mutants_of(name, text)


def draw(count: int, seed: int, prefixes: Sequence[str] = ("",)) -> list[Mutant]:
    """Draw mutants: a file by its lines of code, then one of its mutants. Sorted by module."""
    files = [_mutants_of_file(name) for name in source_files() if name.startswith(tuple(prefixes))]
    files = [(lines, mutants) for lines, mutants in files if mutants]
    random, drawn = Random(seed), set[Mutant]()
    while len(drawn) < min(count, sum(len(mutants) for _, mutants in files)):
        (_, mutants) = random.choices(files, [lines for lines, _ in files])[0]
        drawn.add(random.choice(mutants))
    return sorted(drawn)


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


MODULE_NAME = re.compile(rf"(?:{'|'.join(PACKAGES)})(?:\.\w+)+")


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

    A module without importers gets all test files of its folder.
    """
    folder, _, name = module.rpartition("/")
    mirrored = ROOT / "tests" / folder / f"test_{name}"
    tests = [mirrored.relative_to(ROOT).as_posix()] if mirrored.is_file() else []
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


class Outcome(NamedTuple):
    """Result of a test run; ``seconds`` is processor time."""

    passed: bool
    seconds: float


def run_tests(tree: Path, test: str, limit: float, options: Sequence[str] = ("-x",)) -> Outcome:
    """Run a test file in ``tree`` for ``limit`` seconds of processor time; by default up to the first failure."""
    child = os.fork()
    if not child:
        _become_pytest(tree, [test, *options], int(limit))
    deadline = time.monotonic() + 20 * limit  # for a test that waits
    try:
        while not (ended := os.wait4(child, os.WNOHANG))[0]:
            if time.monotonic() > deadline:
                os.killpg(child, signal.SIGKILL)
            time.sleep(0.02)
    except KeyboardInterrupt:
        os.killpg(child, signal.SIGKILL)
        raise
    _, status, used = ended
    return Outcome(status == 0, used.ru_utime + used.ru_stime)


def _become_pytest(tree: Path, arguments: Sequence[str], limit: int) -> NoReturn:
    """Replace this forked process by a test run in ``tree``."""
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
        null = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(null, stream)
        os.chdir(tree)
        for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
            del sys.modules[name]  # the copy has its own
        os.environ["PYTHONPATH"] = sys.path[0] = str(tree)
        options = ["-q", "-p", "no:cacheprovider", "-p", "no:faker", f"--basetemp={tree / 'scratch'}"]
        code = int(pytest.main([*options, *arguments], [_FailureList(tree / FAILED_NAME)]))
        os._exit(0 if code == pytest.ExitCode.NO_TESTS_COLLECTED else code)
    finally:
        os._exit(99)


class _FailureList:
    """A pytest plugin that appends the ids of failed tests to a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(report.nodeid + "\n")


@cache
def failures_without_mutant(tree: Path, test: str) -> tuple[str, ...] | None:
    """Ids of tests that fail on unchanged sources; None if the file cannot run in time."""
    (tree / FAILED_NAME).write_text("", "utf-8")
    passed = run_tests(tree, test, MAX_TEST_SECONDS, ()).passed
    failed = tuple((tree / FAILED_NAME).read_text("utf-8").splitlines())
    return failed if passed or failed else None


def is_killed(tree: Path, mutant: Mutant) -> bool:
    """Whether a test of the module notices the mutant."""
    path = tree / mutant.module
    original = path.read_text("utf-8")
    changed, left = mutated(mutant, original), float(MAX_TEST_SECONDS)

    def passes(*options: str) -> bool:
        nonlocal left
        path.write_text(changed, "utf-8")
        outcome = run_tests(tree, test, MAX_TEST_SECONDS, ["-x", *options])
        path.write_text(original, "utf-8")
        left -= outcome.seconds
        return outcome.passed

    for test in find_tests(mutant.module):
        if not passes():
            failed = failures_without_mutant(tree, test)
            if failed == () or (failed and not passes(*(f"--deselect={name}" for name in failed))):
                return True
        if left < 0:
            break
    return False


def copy_tree() -> Path:
    """A copy of sources and tests in a new folder."""
    tree = Path(mkdtemp(prefix="malmoi-mutants-"))
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, tree)
    return tree


def survivors_of_module(mutants: Sequence[Mutant]) -> tuple[int, list[Mutant]]:
    """In a worker process: the number of mutants of a module, and those that no test notices."""
    return len(mutants), [mutant for mutant in mutants if not is_killed(_worker_tree(), mutant)]


@cache
def _worker_tree() -> Path:
    tree = copy_tree()
    multiprocessing.util.Finalize(None, shutil.rmtree, args=(tree, True), exitpriority=1)
    return tree


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help="only files below, such as finetune/tasks; default: all packages of the wheel",
    )
    parser.add_argument("--count", type=int, default=120, help="number of mutants")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    groups: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in draw(options.count, options.seed, options.paths or WHEEL):
        groups[mutant.module].append(mutant)
    os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONDONTWRITEBYTECODE": "1"}
    sys.dont_write_bytecode = True
    for name in LIBRARIES:
        importlib.import_module(name)
    total = alive = 0
    with multiprocessing.get_context("fork").Pool(options.workers) as pool:
        for count, survivors in pool.imap_unordered(survivors_of_module, groups.values()):
            total, alive = total + count, alive + len(survivors)
            for mutant in survivors:
                print(f"survived  {mutant.module}:{mutant.line}: {mutant.change}", flush=True)
            print(f"{total} done", end="\r", file=sys.stderr, flush=True)
        pool.close()
        pool.join()
    killed = (total - alive) / total
    print(f"seed {options.seed}: {total - alive} of {total} killed, {killed:.0%} (expected: at least {MIN_KILLED:.0%})")
    return 0 if killed >= MIN_KILLED else 1


if __name__ == "__main__":
    sys.exit(main())
