"""The plain way to find personal data: a pass over the text for each of the sixteen types.

What most anonymizers do, kept as the measure of ``find_pii``: same formats, same checks, same spans, but no clues and
no windows. Tests take it for the truth; ``python -m benchmarks corpus`` for the baseline of speed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from corpus.pii.detect import Candidate, Context, Span, from_second_reading, judge_match, resolve_overlaps
from corpus.pii.fold import fold_disguises, fold_signs
from corpus.pii.formats.table import TABLE
from corpus.pii.types import PiiType


def _joined(kind: PiiType) -> re.Pattern[str]:
    """All formats of a type as one pattern; its groups get numbers so that names are unique."""
    parts = []
    for number, form in enumerate(kind.formats):
        named = re.sub(r"\(\?P([<=])([a-z]+)", rf"(?P\g<1>\g<2>{number}", form.pattern.pattern)
        parts.append(f"(?i:{named})" if form.pattern.flags & re.IGNORECASE else f"(?:{named})")
    return re.compile("|".join(parts))


PASSES = tuple((kind, _joined(kind)) for kind in TABLE)


def find_by_sixteen_passes(text: str) -> list[Span]:
    """The same spans as ``find_pii``, found by one search of all of ``text`` for each type."""
    folded = fold_signs(text)
    reading = fold_disguises(folded.text)
    second = from_second_reading(reading, _candidates(reading.text))
    return resolve_overlaps([*_candidates(folded.text), *second], folded)


def _candidates(text: str) -> Iterator[Candidate]:
    announced = Context(text)
    for kind, anywhere in PASSES:
        if not anywhere.search(text):
            continue
        for form in kind.formats:
            for match in form.pattern.finditer(text):
                yield from judge_match(match, kind, form, announced)
