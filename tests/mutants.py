"""Mutation testing: change one operator or constant at a time and run the tests of the changed module.

    make mutants                                        120 mutants, drawn by seed from the packages of the wheel
    python -m tests.mutants --count 30 --seed 3 corpus finetune/tasks

The script draws mutants from all source files; the chance of a file is proportional to its lines of code. For each
mutant it runs the tests that may notice it (``mutant_tests``) until one fails. It prints the survivors and the share
that was killed. It works on copies of the tree, with the shared data of the original. A mutant whose tests do not end
in time also counts as killed. ``fixtures/same_mutants.txt`` lists changes that no caller can see, each with a reason;
they are not drawn.

Without data about which test executes which line, only some test files of the module are run, and more mutants
survive. ``make coverage`` makes this data.
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
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random
from subprocess import PIPE
from tempfile import mkdtemp
from typing import NamedTuple, NoReturn

import pytest

from tests.mutant_tests import LineTests, find_tests
from tests.source_graph import ROOT, WHEEL, source_files

SAME = ROOT / "tests" / "fixtures" / "same_mutants.txt"
MIN_KILLED = 0.92
MAX_TEST_SECONDS = 60  # processor time of a test run; no further run starts after this time
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


# the layout of JSON, console lines and columns; our own lists of equal length; figures of the paper; buffers and
# threads; the length of hashes
UNSEEN_KEYWORDS = (
    "ensure_ascii", "indent", "allow_unicode", "soft_wrap", "strict", "dev_scores", "dev_examples", "daemon", "maxsize",
    "numbers", "digest_size", "non_blocking", "memory_map", "use_threads", "zero_copy_only", "verbose",
)  # fmt: skip
# sizes of batches, buffers and portions, and times of waiting: other values give the same results, sooner or later;
# tables copied from the paper
UNSEEN_CONSTANTS = re.compile(
    r"PAPER_TABLE_\d+ = |"
    r"(?!MAX)\w*((AT_ONCE|_AHEAD|_SECONDS|PER_(BATCH|CALL|TEXT|STRING)|SLAB_\w+|BATCH_\w+|CHUNK|BLOCK_\w+) = "
    r"|_BYTES = \d+ << )"
)
GPU = re.compile(r"torch\.(?:cuda|accelerator)\.")  # what only a GPU executes; its tests are marked
MAX_FIGURES = 20  # of a statement; more are a table of published figures, which a test would only repeat
SKIPPED = (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom)  # other tests check messages


class Mutant(NamedTuple):
    """One change: its number among those of the module, first line of its statement, its own line, a description."""

    module: str
    number: int
    first: int
    line: int
    change: str


def mutants_of(module: str, text: str) -> list[Mutant]:
    """Every mutant of a module in source order, except those in ``same_mutants.txt``."""
    same, tree = same_mutants(), ast.parse(text)
    places = {id(node): ast.unparse(node).partition("\n")[0] for node in ast.walk(tree) if isinstance(node, ast.stmt)}
    mutants = []
    for number, (node, statement, field, value) in enumerate(_all_changes(tree)):
        before, place, kept = ast.unparse(node), places[id(statement)], getattr(node, field)
        if GPU.search(place) or _is_table(statement):
            continue
        setattr(node, field, value)
        change = f"{_one_line(before)} → {_one_line(ast.unparse(node))}    in: {place}"
        if change not in same:
            mutants.append(Mutant(module, number, statement.lineno, node.lineno, change))
        setattr(node, field, kept)
    return mutants


def _is_table(statement: ast.stmt) -> bool:
    figures = (
        node for node in ast.walk(statement) if isinstance(node, ast.Constant) and type(node.value) in (int, float)
    )
    return isinstance(statement, ast.Assign | ast.AnnAssign) and sum(1 for _ in figures) > MAX_FIGURES


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
            if isinstance(child, ast.Assign) and UNSEEN_CONSTANTS.match(ast.unparse(child)):
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
        case ast.If(test=ast.Name("TYPE_CHECKING")):
            pass
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


class Outcome(NamedTuple):
    """Result of a test run: failed tests, and whether it ended well; ``seconds`` is processor time."""

    failed: tuple[str, ...]
    passed: bool
    seconds: float


def run_tests(tree: Path, tests: Sequence[str], left_out: frozenset[str], limit: float, *options: str) -> Outcome:
    """Run tests (ids, or files for all of theirs) in ``tree`` for ``limit`` seconds of processor time."""
    (tree / FAILED_NAME).write_text("", "utf-8")
    child = os.fork()
    if not child:
        _become_pytest(tree, _Chosen(tests, left_out, tree / FAILED_NAME), options, int(limit))
    deadline = time.monotonic() + 5 * limit  # for a test that waits
    try:
        while not (ended := os.wait4(child, os.WNOHANG))[0]:
            if time.monotonic() > deadline:
                os.killpg(child, signal.SIGKILL)
            time.sleep(0.02)
    except KeyboardInterrupt:
        os.killpg(child, signal.SIGKILL)
        raise
    _, status, used = ended
    failed = (tree / FAILED_NAME).read_text("utf-8").splitlines()
    return Outcome(tuple(failed), status == 0, used.ru_utime + used.ru_stime)


def _become_pytest(tree: Path, chosen: _Chosen, options: Sequence[str], limit: int) -> NoReturn:
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
        always = ["-q", "-p", "no:cacheprovider", "-p", "no:faker", f"--basetemp={tree / 'scratch'}"]
        code = int(pytest.main([*always, *options, *chosen.files], [chosen]))
        os._exit(0 if code == pytest.ExitCode.NO_TESTS_COLLECTED else code)
    finally:
        os._exit(99)


class _Chosen:
    """A pytest plugin that runs chosen tests in their order, and appends the ids of failed ones to a file."""

    def __init__(self, tests: Sequence[str], left_out: frozenset[str], failed: Path) -> None:
        self._ranks = {test: rank for rank, test in reversed([*enumerate(tests)])}
        self._left_out, self._failed = left_out, failed
        self.files = dict.fromkeys(test.partition("::")[0] for test in tests)

    def _rank(self, item: pytest.Item) -> int | None:
        name = item.nodeid
        return None if name in self._left_out else self._ranks.get(name, self._ranks.get(name.partition("::")[0]))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        ranks = {item: rank for item in items if (rank := self._rank(item)) is not None}
        items[:] = sorted(ranks, key=ranks.__getitem__)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            with self._failed.open("a", encoding="utf-8") as file:
                file.write(report.nodeid + "\n")


@cache
def fails_without_mutant(tree: Path, tests: tuple[str, ...]) -> frozenset[str]:
    """Those of some tests that fail on unchanged sources; all of them if they cannot run in time."""
    outcome = run_tests(tree, tests, frozenset(), MAX_TEST_SECONDS)
    failing = frozenset(() if outcome.passed else outcome.failed or tests)
    if failing:
        print(f"left out, as they fail without a mutant: {', '.join(sorted(failing))}", file=sys.stderr, flush=True)
    return failing


def is_killed(tree: Path, mutant: Mutant, batches: Iterable[Sequence[str]]) -> bool:
    """Whether a test notices the mutant."""
    path = tree / mutant.module
    original, left = path.read_text("utf-8"), float(MAX_TEST_SECONDS)
    changed, left_out = mutated(mutant, original), frozenset[str]()
    for tests in batches:
        outcome = None
        while outcome is None or (not outcome.passed and not left_out.issuperset(tests)):
            path.write_text(changed, "utf-8")
            outcome = run_tests(tree, tests, left_out, MAX_TEST_SECONDS, "-x")
            path.write_text(original, "utf-8")
            left -= outcome.seconds
            if not outcome.passed:
                if not (failing := fails_without_mutant(tree, outcome.failed or tuple(tests))):
                    return True
                left_out |= failing
        if left < 0:
            break
    return False


def copy_tree() -> Path:
    """A copy of sources and tests in a new folder."""
    tree = Path(mkdtemp(prefix="malmoi-mutants-"))
    listed = subprocess.run(["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, stdout=PIPE, check=True).stdout
    for name in os.fsdecode(listed).split("\0"):
        if not (ROOT / name).is_file():
            continue
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    return tree


def survivors_of_module(mutants: Mapping[Mutant, Sequence[Sequence[str]]]) -> tuple[int, list[Mutant]]:
    """In a worker process: the number of mutants of a module, and those that none of their tests notices."""
    return len(mutants), [
        mutant for mutant, batches in mutants.items() if not is_killed(_worker_tree(), mutant, batches)
    ]


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
    parser.add_argument("--coverage", type=Path, metavar="FILE", help="data of the tests, one context per test")
    parser.add_argument("--durations", type=Path, metavar="FILE", help="output of the same run, with --durations=0")
    options = parser.parse_args()
    lines = options.coverage and LineTests(options.coverage, options.durations)
    groups: dict[str, dict[Mutant, Sequence[Sequence[str]]]] = defaultdict(dict)
    for mutant in draw(options.count, options.seed, options.paths or WHEEL):
        module, _, first, line, _ = mutant
        batches = lines.batches(module, first, line) if lines else [[file] for file in find_tests(module)]
        groups[module][mutant] = batches
    os.environ.setdefault("MALMOI_SHARED", str(ROOT.parent / "shared"))
    os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONDONTWRITEBYTECODE": "mutants"}
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
