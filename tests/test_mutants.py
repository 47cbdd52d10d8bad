"""The script behind ``make mutants``: what it changes, and that its lists follow the tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants import PARTS, draw, mutants_of, same_mutants

ROOT = Path(__file__).resolve().parents[1]
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


def test_a_draw_repeats_itself_whatever_else_is_drawn() -> None:
    together, alone = draw(6, 1, ["masking", "merges"]), draw(3, 1, ["masking"])
    assert together["masking"] == alone["masking"]
    assert len(together["merges"]) == 3


@pytest.mark.parametrize("part", PARTS)
def test_modules_and_tests_of_a_part_are_there(part: str) -> None:
    assert [name for name in PARTS[part].modules + PARTS[part].tests if not (ROOT / name).is_file()] == []


def test_mutants_without_effect_are_left_out_wherever_their_statement_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.mutants.same_mutants", lambda: {"3 → 4    in: least = a | 3": "a reason"})
    assert [mutant.change for mutant in mutants_of("a.py", "def f():\n    least = (a  # some\n      | 3)\n")] == [
        "a | 3 → a & 3    in: least = a | 3"
    ]


def test_mutants_listed_as_without_effect_give_a_reason() -> None:
    for change, why in same_mutants().items():
        assert "→" in change and "    in: " in change and why, change
