"""In every layout people use each value is found, hidden in every mode, and nothing else of the text changes.

``MALMOI_CASES`` sets how many cases are drawn; ``python -m tests.corpus.pii.layouts`` groups what fails.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.corpus.pii.layouts.draw import draw_case
from tests.corpus.pii.layouts.judge import failures_of
from tests.corpus.pii.layouts.texts import Case

CASES = int(os.environ.get("MALMOI_CASES", "2000"))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A case; hypothesis shrinks the choices of its generator."""
    return draw_case(draw(st.randoms(use_true_random=False)))


@settings(max_examples=CASES, suppress_health_check=list(HealthCheck), phases=[Phase.generate, Phase.shrink])
@given(case=cases())
def test_every_value_is_found_and_hidden_and_nothing_else_changes(case: Case) -> None:
    failures = failures_of(case)
    assert not failures, "\n" + "\n".join(map(str, failures))
