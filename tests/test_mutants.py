"""The script behind ``make mutants``: what it changes and which tests it runs."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.mutant_tests import LineTests, find_tests, importers, uses
from tests.mutants import draw, mutants_of, same_mutants
from tests.source_graph import ROOT, source_files

CODE = '''
def first_long(words: list[str | None], least: int = 3) -> str:
    """Returns 1 word."""
    for word in words:
        if word and not len(word) < least:
            return word
    raise ValueError(f"none has {least + 1}")
'''


def test_code_is_changed_and_annotations_and_messages_are_not() -> None:
    changes = [mutant.change.partition("    in: ")[0] for mutant in mutants_of("a.py", CODE)]
    assert sorted(changes) == [
        "3 → 4",
        "len(word) < least → len(word) <= least",
        "not len(word) < least → not not len(word) < least",
        "word and (not len(word) < least) → word or not len(word) < least",
    ]


def test_published_tables_and_what_only_a_gpu_executes_stay() -> None:
    table = f"PEAKS = {list(range(21))}\n"
    code = "if torch.cuda.is_available():\n    size = torch.cuda.device_count() + 1\n"
    assert mutants_of("a.py", table + code) == []
    assert len(mutants_of("a.py", f"PEAKS = {list(range(20))}\n")) == 20


def test_sizes_of_batches_and_times_of_waiting_stay() -> None:
    code = """ROWS_AT_ONCE = 1 << 20
POLL_SECONDS: float = 2.0
WAIT_SECONDS = 3
MAX_ROWS = 4
print('a', flush=True)
PORTION_BYTES = 64 << 20
KEY_BYTES = 8
"""
    assert {mutant.line for mutant in mutants_of("a.py", code)} == {2, 4, 5, 7}


def test_a_draw_covers_all_packages_and_repeats_itself() -> None:
    places = ("corpus/quality", "finetune/score", "launch/pii", "pretrain/engine")  # all files take ten seconds
    drawn = draw(60, 1, places)
    assert drawn == draw(60, 1, places) != draw(60, 2, places)
    assert len(set(drawn)) == 60
    assert {mutant.module.partition("/")[0] for mutant in drawn} >= {"corpus", "finetune", "launch", "pretrain"}


def test_a_draw_below_a_folder_stays_there() -> None:
    assert {mutant.module.rpartition("/")[0] for mutant in draw(3, 1, ["tokenizer/building"])} == {"tokenizer/building"}


def test_the_mirrored_test_file_runs_first_then_those_that_import_the_module() -> None:
    tests = find_tests("pretrain/batching/masking.py")
    assert tests[0] == "tests/pretrain/batching/test_masking.py"
    assert importers()["pretrain/batching/masking.py"].issuperset(tests[:4])


def test_every_module_with_mutants_has_tests() -> None:
    assert [name for name in source_files() if not name.endswith("__init__.py") and not find_tests(name)] == []


def test_mutants_without_effect_are_left_out_at_any_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.mutants.same_mutants", lambda: {"3 → 4    in: least = a | 3": "a reason"})
    assert [mutant.change for mutant in mutants_of("a.py", "def f():\n    least = (a  # some\n      | 3)\n")] == [
        "a | 3 → a & 3    in: least = a | 3"
    ]


def test_mutants_listed_as_without_effect_give_a_reason() -> None:
    for change, why in same_mutants().items():
        assert "→" in change and "    in: " in change and why, change


SCHEDULE = "def rate():\n    step = (\n        1\n        + 2\n    ) * warmup_share\n    return step\n"


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LineTests:
    """Coverage data in which tests and a fixture execute the statement at line 2 of ``pretrain/made.py``."""
    monkeypatch.setattr("tests.mutant_tests.ROOT", tmp_path)
    (tmp_path / "pretrain").mkdir()
    (tmp_path / "pretrain" / "made.py").write_text(SCHEDULE)
    (tmp_path / "tests").mkdir()
    for name in "abcd":
        uses = "warmup_share" if name == "c" else "other_word"
        (tmp_path / "tests" / f"{name}.py").write_text(f"def test_{name}(): assert {uses}\n")
    tests = ["a.py::test_a[x|y]", *(f"a.py::test_a[{n}]" for n in range(3)), "b.py::test_b", "c.py::test_c"]
    contexts = ["tests/e.py::gone|run", "", "|run", "tests/d.py::test_d|setup", "tests/c.py::in_a_process (call)"]
    data, log = tmp_path / "coverage", tmp_path / "log"
    with sqlite3.connect(data) as tables:
        tables.execute("create table file (id, path)")
        tables.execute("create table context (id, context)")
        tables.execute("create table line_bits (file_id, context_id, numbits)")
        tables.execute("insert into file values (1, '/anywhere/pretrain/made.py')")
        for number, context in enumerate([*contexts, *(f"tests/{test}|run" for test in tests)]):
            tables.execute("insert into context values (?, ?)", (number, context))
            tables.execute("insert into line_bits values (1, ?, ?)", (number, bytes([1 << 2])))
    times = {
        "call     tests/a.py::test_a[x|y]": 2.5,
        "setup    tests/a.py::test_a[x|y]": 0.2,
        "call     tests/d.py::z": 9,
    }
    log.write_text("".join(f"{seconds:.2f}s {test}\n" for test, seconds in times.items()))
    return LineTests(data, log)


def test_a_changed_line_is_checked_by_the_tests_that_execute_its_statement(lines: LineTests) -> None:
    """First the test that names what the statement names, then the fastest; of a test with parameters three cases."""
    assert lines.tests_of("pretrain/made.py", 2, 5) == [
        "tests/c.py::test_c", "tests/a.py::test_a[0]", "tests/a.py::test_a[1]", "tests/a.py::test_a[2]",
        "tests/b.py::test_b", "tests/c.py::in_a_process", "tests/d.py::test_d", "tests/d.py", "tests/a.py::test_a[x|y]"
    ]  # fmt: skip
    assert lines.tests_of("pretrain/made.py", 6, 6) == []


def test_a_changed_constant_is_checked_where_it_is_used() -> None:
    """``LONGEST_WORD`` of ``tokenizer/words.py`` is used in another module."""
    at = (ROOT / "tokenizer/words.py").read_text("utf-8").splitlines()
    line = next(number for number, text in enumerate(at, 1) if text.startswith("LONGEST_WORD ="))
    assert {file for file, _ in uses("tokenizer/words.py", line)} >= {
        "tokenizer/words.py",
        "tokenizer/building/export.py",
    }
