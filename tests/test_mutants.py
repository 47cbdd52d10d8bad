"""The script behind ``make mutants``: what it changes and which tests it runs."""

from __future__ import annotations

import pytest

from tests.mutants import draw, find_tests, mutants_of, same_mutants
from tests.source_graph import source_files

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
    assert "tests/pretrain/batching/test_batches.py" in tests


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
