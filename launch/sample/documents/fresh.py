"""Keeps documents from repeating sentences: of a few drafts the one with the fewest known sentences is taken.

What still repeats is left out, but for opening sentences and for utterances, which a dialogue needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from launch.sample.documents.articles import Draft

ATTEMPTS = 6


def freshest(make: Callable[[int], Draft], seen: set[str]) -> Draft:
    """The best of ``ATTEMPTS`` drafts; its sentences join ``seen``."""
    best = make(0)
    for attempt in range(1, ATTEMPTS):
        if not _repeats(best, seen):
            break
        other = make(attempt)
        if _repeats(other, seen) < _repeats(best, seen):
            best = other
    if best.separator != "\n":
        kept = tuple(line for at, line in enumerate(best.lines) if at == 0 or line not in seen)
        best = replace(best, lines=kept)
    seen.update(spoken(line) for line in best.lines)
    return best


def spoken(line: str) -> str:
    """An utterance without its speaker; other lines as they are."""
    who, colon, said = line.partition(": ")
    return said if colon and len(who) <= 4 else line


def _repeats(draft: Draft, seen: set[str]) -> int:
    return sum(spoken(line) in seen for line in draft.lines)
