"""Linear time everywhere: patterns and functions take twice as long for a text twice as long, with any content.

Every pattern of the packages meets repeats of what it nearly matches, every public function of text repeats of what its
patterns look for. A growth that is steeper than linear over two doublings, three times in a row, is an error.
A few attacks each run always; ``MALMOI_LONG=1`` runs all of them, with texts four times as long, for half an hour.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import cache
from random import Random
from time import process_time

import pytest

from tests.growth.attacks import GENERIC, Attack, attacks_on, pick
from tests.growth.clock import steep_growth
from tests.growth.functions import calls, unused_reasons
from tests.growth.patterns import Found, all_patterns

SHORT_CHARS, LONG_CHARS = 16_000, 64_000
WALKS = 3
is_long = pytest.mark.skipif(
    not os.environ.get("MALMOI_LONG"), reason="all attacks take half an hour; set MALMOI_LONG=1 to run them"
)

found_patterns = cache(all_patterns)
found_calls = cache(calls)


def steep(run: Callable[[str], object], attacks: list[Attack], longest: int) -> list[str]:
    """The first attack under which ``run`` grows too steeply, as a line for the reader; an empty list if none."""
    for attack in attacks:
        if growth := steep_growth(run, attack.text, longest):
            return [f"{attack}: {growth}"]
    return []


def steep_patterns(patterns: dict[str, Found], count: int | None, longest: int) -> list[str]:
    """What grows too steeply under ``count`` attacks of its own and as many general ones, all if None."""
    lines = []
    for name, found in patterns.items():
        rng = Random(name)
        own = pick(attacks_on(found.pattern, rng, WALKS), rng, count)
        lines += [f"{name} {line}" for line in steep(found.run, [*own, *pick(GENERIC, rng, count)], longest)]
    return lines


def steep_calls(count: int | None, longest: int) -> list[str]:
    """The same for functions of text, which meet general attacks only."""
    lines = []
    for name, run in found_calls().items():
        lines += [f"{name} {line}" for line in steep(run, [*pick(GENERIC, Random(name), count)], longest)]
    return lines


def test_square_growth_is_distinguished_from_linear() -> None:
    def square(text: str) -> None:
        end = process_time() + (len(text) / SHORT_CHARS) ** 2 / 5
        while process_time() < end:
            pass

    assert steep_growth(square, Attack("a").text, SHORT_CHARS)
    assert steep_growth(lambda text: [hash(text[:9]) for _ in text], Attack("a").text, SHORT_CHARS) is None


def test_attacks_find_what_is_known_to_be_slow() -> None:
    slow = {name: Found(re.compile(name), frozenset({"search"})) for name in (r"\s+$", r"(\w+)=", r"\d+가")}
    assert len(steep_patterns(slow, None, SHORT_CHARS // 2)) == len(slow)


def test_every_text_function_is_called_or_left_out_for_a_reason() -> None:
    assert found_calls() and not unused_reasons()


def test_no_pattern_grows_faster_than_its_text() -> None:
    assert not steep_patterns(found_patterns(), 5, SHORT_CHARS)


def test_no_function_grows_faster_than_its_text() -> None:
    assert not steep_calls(5, SHORT_CHARS)


@is_long
@pytest.mark.slow
def test_no_pattern_grows_faster_under_any_attack() -> None:
    assert not steep_patterns(found_patterns(), None, LONG_CHARS)


@is_long
@pytest.mark.slow
def test_no_function_grows_faster_under_any_attack() -> None:
    assert not steep_calls(None, LONG_CHARS)
