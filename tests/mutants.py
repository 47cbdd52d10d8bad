"""Would the suite notice? Changes one operator or constant at a time and runs the tests that cover it.

    make mutants                                               56 mutants, drawn by seed, of all parts below
    python tests/mutants.py --count 20 --seed 3 masking index

Prints how many were killed and which survived. Works on a copy of the tree. A mutant is killed when a test fails or
the run takes three times as long as without it. Those that change nothing a caller can see are listed, with the reason,
in ``fixtures/same_mutants.txt`` and left out.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
WANTED = 0.95  # of the mutants killed


@dataclass(frozen=True, slots=True)
class Part:
    """Modules, and the test files that must notice a change in them; the fastest first."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]


PARTS = {
    "masking": Part(("pretrain/rows/masking.py",), ("tests/pretrain/rows/test_masking.py",)),
    "packing": Part(
        ("pretrain/rows/packing.py",),
        ("tests/pretrain/rows/test_packing.py", "tests/pretrain/rows/test_batches.py"),
    ),
    "metrics": Part(
        (
            *(f"finetune/tasks/{name}/metrics.py" for name in ("ner", "re", "dp", "mrc", "wos")),
            "finetune/tasks/labels.py",
            "finetune/tasks/similarity.py",
        ),
        (
            *(f"tests/finetune/tasks/test_{name}.py" for name in ("metric_rules", "published_values")),
            *(f"tests/finetune/tasks/{name}/test_metrics.py" for name in ("re", "dp", "mrc", "wos")),
            "tests/finetune/tasks/test_labels.py",
        ),
    ),
    "decoding": Part(
        ("finetune/tasks/dp/tree.py", "finetune/tasks/mrc/windows.py", "finetune/tasks/ner/align.py"),
        (
            "tests/finetune/tasks/dp/test_tree.py",
            "tests/finetune/tasks/mrc/test_windows.py",
            "tests/finetune/tasks/ner/test_task.py",
        ),
    ),
    "dialogue": Part(("finetune/heads/dialogue.py",), ("tests/finetune/heads/test_dialogue.py",)),
    "index": Part(
        ("corpus/decontamination/index.py", "corpus/decontamination/search.py", "corpus/decontamination/ngrams.py"),
        tuple(f"tests/corpus/decontamination/test_{name}.py" for name in ("ngrams", "stream", "index")),
    ),
    "merges": Part(
        ("tokenizer/building/merges.py", "tokenizer/building/pruning.py"),
        ("tests/tokenizer/building/test_merges.py", "tests/tokenizer/building/test_pruning.py"),
    ),
    "checkpoints": Part(("pretrain/saved/checkpoints.py",), ("tests/pretrain/saved/test_checkpoints.py",)),
    "manifest": Part(("launch/manifest.py",), ("tests/launch/test_manifest.py",)),
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


SKIPPED = (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom)  # what is said in messages is held by other tests


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module with one thing changed: ``source`` is its whole text after the change."""

    module: str
    line: int
    change: str
    source: str


def mutants_of(module: str, text: str) -> list[Mutant]:
    """Every mutant of a module, in the order of its text, but for those in ``same_mutants.txt``."""
    tree = ast.parse(text)
    same = {line.rpartition(" | ")[0] for line in SAME.read_text("utf-8").splitlines()}
    lines = text.splitlines()
    found = []
    for node in _code(tree):
        for field, value in _changes(node):
            before, kept = ast.unparse(node), getattr(node, field)
            setattr(node, field, value)
            change = f"{_one_line(before)} → {_one_line(ast.unparse(node))}    in: {lines[node.lineno - 1].strip()}"
            if f"{module}: {change}" not in same:
                found.append(Mutant(module, node.lineno, change, ast.unparse(tree)))
            setattr(node, field, kept)
    return found


def _code(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """The nodes below that decide what is computed: no annotations, decorators, messages and log lines."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, SKIPPED):
                continue
            if isinstance(child, ast.Call) and ast.unparse(child.func).startswith("log."):
                continue
            if isinstance(child, ast.keyword) and child.arg == "ensure_ascii":  # JSON reads the same
                continue
            if isinstance(child, ast.expr | ast.stmt):
                yield child
            yield from _code(child)


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


def passes(tree: Path, tests: Sequence[str], limit: float | None) -> bool:
    """Whether the test files pass in ``tree`` within ``limit`` seconds."""
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    environment = os.environ | {"PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(
        command, cwd=tree, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        return process.wait(limit) == 0
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return False


def survivors(tree: Path, part: Part, mutants: Sequence[Mutant]) -> Iterator[Mutant]:
    """The mutants that no test of the part notices.

    Raises:
        SystemExit: the tests fail without any mutant.
    """
    started = time.monotonic()
    if not passes(tree, part.tests, None):
        raise SystemExit(f"{' '.join(part.tests)}: these tests fail as they are; make them pass first")
    limit = 3 * (time.monotonic() - started) + 10
    for mutant in mutants:
        path = tree / mutant.module
        original = path.read_bytes()
        path.write_text(mutant.source, "utf-8")
        if passes(tree, part.tests, limit):
            yield mutant
        path.write_bytes(original)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all where none is named")
    parser.add_argument("--count", type=int, default=56, help="mutants in all")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; the parts are {', '.join(PARTS)}")
    drawn = draw(options.count, options.seed, options.parts or list(PARTS))
    alive = 0
    with TemporaryDirectory(prefix="malmoi-mutants-") as scratch:
        tree = Path(scratch)
        for name in ("corpus", "tokenizer", "pretrain", "finetune", "launch", "tests"):
            shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "README.md"):
            shutil.copy(ROOT / name, tree)
        for name, mutants in drawn.items():
            left = list(survivors(tree, PARTS[name], mutants))
            alive += len(left)
            print(f"{name:12} {len(mutants) - len(left):3} of {len(mutants):3} killed", flush=True)
            for mutant in left:
                print(f"    {mutant.module}:{mutant.line}: {mutant.change}", flush=True)
    total = sum(map(len, drawn.values()))
    print(f"{total - alive} of {total} killed, {100 * (total - alive) / total:.0f} % (wanted: {100 * WANTED:.0f} %)")
    return 0 if total - alive >= WANTED * total else 1


if __name__ == "__main__":
    sys.exit(main())
