"""No word, particle, bracket or separator next to a value with a telling format hides it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.corpus.pii.insertions import OTHER_WRITINGS, TELLING_WRITINGS, draw_cases, is_missed, read_sentences

MAX_MISSED_SHARE = 0.001
"""Of the other writings: 만 (only, also 10,000) after a house number is a count."""


@pytest.mark.parametrize("count", [4_000, pytest.param(50_000, marks=pytest.mark.slow)])
def test_a_telling_value_is_found_anywhere_in_real_text(shared: Callable[[str], Path], count: int) -> None:
    sentences = read_sentences(shared("data/corpora"))
    assert [case.text for case in draw_cases(Random(1), sentences, TELLING_WRITINGS, count) if is_missed(case)] == []


@pytest.mark.parametrize("count", [4_000, pytest.param(50_000, marks=pytest.mark.slow)])
def test_other_values_are_nearly_always_found(shared: Callable[[str], Path], count: int) -> None:
    sentences = read_sentences(shared("data/corpora"))
    missed = [case.text for case in draw_cases(Random(2), sentences, OTHER_WRITINGS, count) if is_missed(case)]
    assert len(missed) <= MAX_MISSED_SHARE * count + 2, missed
