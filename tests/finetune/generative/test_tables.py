"""Notes below the tables of generative models."""

from __future__ import annotations

import pytest

from finetune.generative.tables import _score_note


@pytest.mark.parametrize(("count", "shown"), [(1, "q0."), (5, "q0, q1, q2, q3, q4."), (6, "q0, q1, q2, q3, q4, ….")])
def test_at_most_five_questions_without_reference_are_named(count: int, shown: str) -> None:
    missing = [f"q{number}" for number in range(count)]
    note = _score_note(
        {"n": 8, "unanswered": 0, "without_reference": missing, "model": "a", "judges": ["b"]}  # type: ignore[arg-type]
    )
    assert note.endswith(f"Judged without the reference answer that their category needs: {shown}")
