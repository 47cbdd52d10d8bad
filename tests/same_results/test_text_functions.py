"""Recorded results of every public function that takes text, on texts that its own patterns match."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from types import FunctionType
from typing import Any

import pytest

from tests.growth.attacks import Walk, parse
from tests.growth.functions import calls
from tests.growth.patterns import all_patterns
from tests.same_results.mangling import WORDS, mangle
from tests.same_results.recording import check_recorded, groups
from tests.same_results.test_corpus import varied_texts

WALKS = 5
MAX_TEXTS = 500
found_patterns = cache(all_patterns)


def area_of(place: str) -> str:
    """The folder of a function or pattern: its first two names."""
    return ".".join(re.split(r"[.:\[]", place)[:2])


@cache
def matching_texts(area: str) -> list[str]:
    """Texts that the patterns of a folder match, or nearly match, between pieces of ordinary text."""
    texts = []
    patterns = {found.pattern for name, found in found_patterns().items() if area_of(name) == area}
    for pattern in sorted(patterns, key=lambda pattern: (repr(pattern.pattern), pattern.flags)):
        rng = Random(f"{pattern.pattern!r}")
        for _ in range(WALKS):
            parts = [matching_text(pattern, rng) for _ in range(rng.choice((1, 1, 2)))]
            before = rng.choice(("", "", rng.choice(WORDS) + " ", rng.choice(varied_texts())[:30]))
            after = rng.choice(("", "", "입니다.", rng.choice(varied_texts())[:30]))
            texts.append(before + rng.choice(("", " ", "\n")).join(parts) + after)
    return texts if len(texts) <= MAX_TEXTS else Random(area).sample(texts, MAX_TEXTS)


def matching_text(pattern: re.Pattern[Any], rng: Random) -> str:
    """A text from one random way through the parse tree of a pattern, with other digits."""
    walk = Walk(parse(pattern), rng)
    text = walk.prefixes[-1] if walk.prefixes else ""
    return re.sub("[01]", lambda match: str(rng.randrange(10)) if rng.random() < 0.7 else match[0], text)


@cache
def plain_texts() -> list[str]:
    rng = Random(11)
    return [mangle(rng.choice(varied_texts())[:300], rng, rng.randrange(4)) for _ in range(40)]


def result_of(run: Callable[[str], object], text: str) -> object:
    """The result, with all values of an iterator; the name of the error if it refuses the text."""
    try:
        found = run(text)
        if isinstance(found, FunctionType):
            return found.__name__
        return list(found) if isinstance(found, Iterator) else found
    except (ValueError, LookupError) as error:
        return type(error).__name__


@pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="recorded with Python 3.11, whose parse trees make the texts"
)
def test_functions_of_text(tmp_path: Path) -> None:
    results: dict[str, Any] = {}
    for place, run in calls().items():
        found = [result_of(run, text) for text in [*matching_texts(area_of(place)), *plain_texts()]]
        results |= {f"{place} {key}": part for key, part in groups(found, 100).items()}
    check_recorded("text_functions", results, tmp_path)
