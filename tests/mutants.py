"""Would the suite notice? Changes one operator or constant at a time and runs the tests that cover it.

    make mutants                                               90 mutants, drawn by seed, of all parts below
    python tests/mutants.py --count 20 --seed 3 masking index

Prints how many were killed and which survived. Works on a copy of the tree, without the shared data. A mutant is killed
when a test fails or the run takes three times the processor time that it takes without it. Those that change nothing a
caller can see are listed, with the reason, in ``fixtures/same_mutants.txt`` and left out.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import NamedTuple, NoReturn

import pytest

ROOT = Path(__file__).resolve().parents[1]
WANTED = 0.95  # of the mutants killed
LONGEST = 300  # seconds that the tests of a part may take
MOST_BYTES = 8 << 30  # of memory for a mutant that grows without end
COPIED = ("corpus", "tokenizer", "pretrain", "finetune", "launch", "tests", "malmoi.py", "pyproject.toml", "README.md")
LIBRARIES = (  # loaded once; every run of tests is a fork of this process
    "numpy", "pyarrow.parquet", "pydantic", "hypothesis.strategies", "pytest", "sklearn.metrics", "scipy.stats",
    "seqeval.metrics", "tokenizers", "datasets", "safetensors.torch", "torch", "deepspeed", "transformers.trainer",
    "transformers.models.bert.modeling_bert", "transformers.models.roberta.modeling_roberta",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Part:
    """Modules, and the test files that must notice a change in them; the fastest first."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]


PARTS = {
    "masking": Part(("pretrain/batching/masking.py",), ("tests/pretrain/batching/test_masking.py",)),
    "packing": Part(
        ("pretrain/batching/packing.py",),
        ("tests/pretrain/batching/test_packing.py", "tests/pretrain/batching/test_batches.py"),
    ),
    "metrics": Part(
        (
            *(f"finetune/tasks/{name}/metrics.py" for name in ("ner", "re", "dp", "mrc", "wos")),
            "finetune/tasks/labels.py",
            "finetune/tasks/similarity.py",
        ),
        (
            *(f"tests/finetune/tasks/test_{name}.py" for name in ("metric_rules", "published_values")),
            *(f"tests/finetune/tasks/{name}/test_metrics.py" for name in ("ner", "re", "dp", "mrc", "wos")),
            "tests/finetune/test_hyperparameters.py",
            "tests/finetune/tasks/test_labels.py",
            "tests/finetune/score/test_predictions.py",
        ),
    ),
    "decoding": Part(
        ("finetune/tasks/dp/tree.py", "finetune/tasks/mrc/windows.py", "finetune/tasks/ner/align.py"),
        (
            "tests/finetune/tasks/dp/test_tree.py",
            "tests/finetune/tasks/mrc/test_windows.py",
            "tests/finetune/tasks/ner/test_task.py",
            "tests/finetune/tasks/mrc/test_task.py",
        ),
    ),
    "dialogue": Part(("finetune/heads/dialogue.py",), ("tests/finetune/heads/test_dialogue.py",)),
    "index": Part(
        ("corpus/decontamination/index.py", "corpus/decontamination/search.py", "corpus/decontamination/ngrams.py"),
        tuple(f"tests/corpus/decontamination/test_{name}.py" for name in ("ngrams", "edges", "index")),
    ),
    "merges": Part(
        ("tokenizer/building/merges.py", "tokenizer/building/pruning.py"),
        ("tests/tokenizer/building/test_merges.py", "tests/tokenizer/building/test_pruning.py"),
    ),
    "checkpoints": Part(("pretrain/checkpoint/checkpoints.py",), ("tests/pretrain/checkpoint/test_checkpoints.py",)),
    "manifest": Part(("launch/manifest.py",), ("tests/launch/test_manifest.py", "tests/launch/test_lock.py")),
}
SAME = ROOT / "tests" / "fixtures" / "same_mutants.txt"

OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}  # fmt: skip
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}


# JSON reads the same; our own lists that go together are of one length; the last two are figures copied from the paper
UNSEEN_KEYWORDS = ("ensure_ascii", "strict", "paper_dev", "dev_examples")
SKIPPED = (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom)  # what is said in messages is held by other tests


class Mutant(NamedTuple):
    """One change of a module: its number among all of them, where it is and what it says."""

    module: str
    number: int
    line: int
    change: str


def mutants_of(module: str, text: str) -> list[Mutant]:
    """Every mutant of a module, in the order of its text, but for those in ``same_mutants.txt``."""
    same = same_mutants()
    found = []
    for number, (node, statement, field, value) in enumerate(_all_changes(ast.parse(text))):
        before, place, kept = ast.unparse(node), ast.unparse(statement).partition("\n")[0], getattr(node, field)
        setattr(node, field, value)
        change = f"{_one_line(before)} → {_one_line(ast.unparse(node))}    in: {place}"
        if change not in same:
            found.append(Mutant(module, number, node.lineno, change))
        setattr(node, field, kept)
    return found


def mutated(mutant: Mutant, text: str) -> str:
    """The text of its module after the change."""
    tree = ast.parse(text)
    node, _, field, value = next(islice(_all_changes(tree), mutant.number, None))
    setattr(node, field, value)
    return ast.unparse(tree)


def same_mutants() -> dict[str, str]:
    """Changes that nobody can see, and why. Each names its statement, not its place: code may move between files."""
    changes_whys = [line.rpartition(" | ")[::2] for line in SAME.read_text("utf-8").splitlines()]
    return dict(changes_whys)


def _code(node: ast.AST, statement: ast.stmt | None = None) -> Iterator[tuple[ast.expr | ast.stmt, ast.stmt]]:
    """The nodes below that decide what is computed, each with its statement: no annotations, messages and log lines."""
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
    """A node, its statement, and a field of the node with its other value; the field is as it was at the next one."""
    for node, statement in _code(tree):
        for field, value in _changes(node):
            yield node, statement, field, value


def _changes(node: ast.AST) -> Iterator[tuple[str, object]]:
    """What may be changed of a node: a field and its other value."""
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


def draw(count: int, seed: int, names: Sequence[str]) -> dict[str, list[Mutant]]:
    """About ``count`` mutants, as many of each part; a part has the same ones whatever else is drawn."""
    drawn = {}
    for name in names:
        every = [m for module in PARTS[name].modules for m in mutants_of(module, (ROOT / module).read_text("utf-8"))]
        few = min(len(every), -(-count // len(names)))
        drawn[name] = [every[at] for at in sorted(Random(f"{seed} {name}").sample(range(len(every)), few))]
    return drawn


class Outcome(NamedTuple):
    """Of a run of tests; seconds are those of the processor."""

    passed: bool
    seconds: float


def run_tests(tree: Path, tests: Sequence[str], limit: float) -> Outcome:
    """Run test files in ``tree`` up to the first failure or for ``limit`` seconds of the processor."""
    child = os.fork()
    if not child:
        _become_pytest(tree, tests, int(limit))
    give_up = time.monotonic() + 20 * limit  # on a test that waits for something
    try:
        while not (ended := os.wait4(child, os.WNOHANG))[0]:
            if time.monotonic() > give_up:
                os.killpg(child, signal.SIGKILL)
            time.sleep(0.02)
    except KeyboardInterrupt:
        os.killpg(child, signal.SIGKILL)
        raise
    _, status, used = ended
    return Outcome(status == 0, used.ru_utime + used.ru_stime)


def _become_pytest(tree: Path, tests: Sequence[str], limit: int) -> NoReturn:
    """Goes on as a run of tests in ``tree`` and never comes back."""
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nowhere, stream)
        os.chdir(tree)
        os.environ["PYTHONPATH"] = sys.path[0] = str(tree)
        options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:faker", f"--basetemp={tree / 'scratch'}"]
        os._exit(int(pytest.main([*options, *tests])))
    finally:
        os._exit(99)


def survivors(tree: Path, part: Part, mutants: Sequence[Mutant]) -> Iterator[Mutant]:
    """The mutants that no test of the part notices.

    Raises:
        SystemExit: the tests fail without any mutant.
    """
    passed, seconds = run_tests(tree, part.tests, LONGEST)
    if not passed:
        raise SystemExit(f"{' '.join(part.tests)}: these tests fail as they are; make them pass first")
    for mutant in mutants:
        path = tree / mutant.module
        original = path.read_bytes()
        path.write_text(mutated(mutant, original.decode()), "utf-8")
        if run_tests(tree, part.tests, 3 * seconds + 10).passed:
            yield mutant
        path.write_bytes(original)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all where none is named")
    parser.add_argument("--count", type=int, default=90, help="mutants in all")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; the parts are {', '.join(PARTS)}")
    drawn = draw(options.count, options.seed, options.parts or list(PARTS))
    os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONDONTWRITEBYTECODE": "1"}
    sys.dont_write_bytecode = True
    for name in LIBRARIES:
        importlib.import_module(name)
    alive = 0
    with TemporaryDirectory(prefix="malmoi-mutants-") as scratch:
        tree = Path(scratch) / "tree"
        tree.mkdir()
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / name, tree)
        for name, mutants in drawn.items():
            left = 0
            for mutant in survivors(tree, PARTS[name], mutants):
                left += 1
                print(f"    {mutant.module}:{mutant.line}: {mutant.change}", flush=True)
            alive += left
            print(f"{name:12} {len(mutants) - left:3} of {len(mutants):3} killed", flush=True)
    total = sum(map(len, drawn.values()))
    print(f"{total - alive} of {total} killed, {100 * (total - alive) / total:.0f} % (wanted: {100 * WANTED:.0f} %)")
    return 0 if total - alive >= WANTED * total else 1


if __name__ == "__main__":
    sys.exit(main())
