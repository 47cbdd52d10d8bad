"""In every layout people use each value is found, hidden in every mode, and nothing else of the text changes.

Each case is drawn from a number, so the same ones are tried everywhere (what hypothesis draws depends on the modules
that happen to be imported). ``MALMOI_CASES`` sets how many; ``python -m tests.corpus.pii.layouts`` groups what fails.
"""

from __future__ import annotations

import os
from random import Random

import pytest

from tests.corpus.pii.layouts.draw import draw_case
from tests.corpus.pii.layouts.judge import failures_of

CASES = int(os.environ.get("MALMOI_CASES", "2000"))
PARTS = 20


@pytest.mark.parametrize("part", range(PARTS))
def test_every_value_is_found_and_hidden_and_nothing_else_changes(part: int) -> None:
    failures = [
        f"case {number}: {failure}"
        for number in range(part, CASES, PARTS)
        for failure in failures_of(draw_case(Random(number)))
    ]
    assert not failures, "\n" + "\n".join(failures)
