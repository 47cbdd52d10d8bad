"""A text with replaced parts, and the positions of the original that they come from."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple


class Cut(NamedTuple):
    """``folded`` characters from ``at`` on replace ``original`` characters from ``start`` on."""

    at: int
    folded: int
    start: int
    original: int


@dataclass(frozen=True, slots=True, eq=False)
class Folded:
    """A folded text, the cuts of each step, which map its positions to the original, and the parts that are new."""

    text: str
    steps: tuple[list[Cut], ...] = ()
    new: tuple[tuple[int, int], ...] = ()

    def original(self, start: int, end: int) -> tuple[int, int]:
        """The span of the original for ``text[start:end]``, which must not be empty."""
        for cuts in reversed(self.steps):
            start, end = _place(cuts, start)[0], _place(cuts, end - 1)[1]
        return start, end


def _place(cuts: list[Cut], index: int) -> tuple[int, int]:
    """Start and end, in the text before the step, of the character at ``index``."""
    number = bisect_right(cuts, index, key=attrgetter("at")) - 1
    if number < 0:
        return index, index + 1
    cut = cuts[number]
    if index < cut.at + cut.folded:
        return cut.start, cut.start + cut.original
    start = index - cut.at - cut.folded + cut.start + cut.original
    return start, start + 1


Change = tuple[int, int, str]
"""Start and end of a part of a text, and its new text."""


def rewrite(folded: Folded, changes: Iterable[Change]) -> Folded:
    """Apply sorted changes to a folded text; each change of length adds a cut."""
    text = folded.text
    pieces: list[str] = []
    cuts: list[Cut] = []
    places: list[tuple[int, int]] = []
    position = length = 0
    for start, end, new in changes:
        pieces += [text[position:start], new]
        length += start - position
        if len(new) != end - start:
            cuts.append(Cut(length, len(new), start, end - start))
        places.append((length, length + len(new)))
        length += len(new)
        position = end
    if not pieces:
        return folded
    return Folded("".join(pieces) + text[position:], folded.steps + (cuts,) * bool(cuts), tuple(places))


def widen(windows: list[tuple[int, int]], start: int, end: int) -> None:
    """Add a window; overlapping windows are joined, so no text is searched twice."""
    start = max(0, start)
    if windows and start <= windows[-1][1]:
        windows[-1] = (windows[-1][0], max(end, windows[-1][1]))
    else:
        windows.append((start, end))
