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
    drawn = draw(60, 1)
    assert drawn == draw(60, 1) != draw(60, 2)
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


def test_mutants_without_effect_are_left_out_wherever_their_statement_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.mutants.same_mutants", lambda: {"3 → 4    in: least = a | 3": "a reason"})
    assert [mutant.change for mutant in mutants_of("a.py", "def f():\n    least = (a  # some\n      | 3)\n")] == [
        "a | 3 → a & 3    in: least = a | 3"
    ]


def test_mutants_listed_as_without_effect_give_a_reason() -> None:
    for change, why in same_mutants().items():
        assert "→" in change and "    in: " in change and why, change


@pytest.fixture
def lines(tmp_path: Path) -> LineTests:
    """Coverage data in which three tests and a fixture execute lines 3 and 5 of ``pretrain/schedule.py``."""
    data, log = tmp_path / "coverage", tmp_path / "log"
    with sqlite3.connect(data) as tables:
        tables.execute("create table file (id, path)")
        tables.execute("create table context (id, context)")
        tables.execute("create table line_bits (file_id, context_id, numbits)")
        tables.execute("insert into file values (1, '/anywhere/pretrain/schedule.py')")
        contexts = (
            "tests/e.py::gone|run",
            "tests/a.py::slow[x|y]|run",
            "tests/b.py::fast|run",
            "tests/c.py::in_a_process (call)",
            "",
            "|run",
        )
        for number, context in enumerate((*contexts, "tests/d.py::first|setup")):
            tables.execute("insert into context values (?, ?)", (number, context))
            bits = bytes([1 << 3 | 1 << 5]) if number != 2 else bytes([1 << 5])
            tables.execute("insert into line_bits values (1, ?, ?)", (number, bits))
    log.write_text(
        "2.50s call     tests/a.py::slow[x|y]\n0.20s setup    tests/a.py::slow[x|y]\n9.00s call     tests/d.py::z\n"
    )
    return LineTests(data, log)


def test_a_changed_line_is_checked_by_the_tests_that_execute_it_fastest_first(
    lines: LineTests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pathlib.Path.is_file", lambda path: path.name != "e.py")
    assert lines.tests_of("pretrain/schedule.py", 5, 5) == [
        "tests/b.py::fast", "tests/c.py::in_a_process", "tests/d.py::first", "tests/a.py::slow[x|y]", "tests/d.py"
    ]  # fmt: skip
    assert "tests/b.py::fast" not in lines.tests_of("pretrain/schedule.py", 3, 4)  # line 4 belongs to a statement at 3
    assert lines.tests_of("pretrain/loop.py", 5, 5) == []


def test_a_changed_constant_is_checked_where_it_is_used() -> None:
    """``LONGEST_WORD`` of ``tokenizer/words.py`` is used in another module."""
    at = (ROOT / "tokenizer/words.py").read_text("utf-8").splitlines()
    line = next(number for number, text in enumerate(at, 1) if text.startswith("LONGEST_WORD ="))
    assert {file for file, _ in uses("tokenizer/words.py", line)} >= {
        "tokenizer/words.py",
        "tokenizer/building/export.py",
    }
