"""What must hold for a case: found, hidden in every mode, nothing else changed, found again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import get_args

from corpus.pii.detect import find_pii
from corpus.pii.hide import Mode, PiiHider
from corpus.pii.key import seeded_secret
from tests.corpus.pii.layouts.texts import Case
from tests.corpus.pii.layouts.values import Value

MODES: tuple[Mode, ...] = get_args(Mode)


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong with which value; ``what`` is a word for the summary, ``detail`` for the reader."""

    what: str
    case: Case
    value: Value
    detail: str

    def __str__(self) -> str:
        expected = [(start, end, value.type, value.text) for start, end, value in self.case.spans]
        return (
            f"{self.what}: {self.value.type} ({self.value.writing}) {self.value.text!r}\n"
            f"  layout {self.case.layout!r}, label {self.case.label}, disguise {self.case.disguise}\n"
            f"  text   {self.case.text!r}\n  expected {expected}\n  {self.detail}"
        )


def failures_of(case: Case) -> list[Failure]:
    """All that fails: what is not found first, and only where all is found what hiding leaves."""
    return _finding(case) or [failure for mode in MODES for failure in _hiding(case, mode)]


def _finding(case: Case) -> list[Failure]:
    found = [(span.start, span.end, span.type) for span in find_pii(case.text)]
    shown = f"found  {[(*span, case.text[span[0] : span[1]]) for span in found]}"
    failures = []
    for start, end, value in case.spans:
        if (start, end, value.type) in found:
            continue
        over = [span for span in found if span[0] < end and start < span[1]]
        is_place_right = any(span[:2] == (start, end) for span in over)
        what = "wrong type" if is_place_right else "wrong span" if over else "missed"
        failures.append(Failure(what, case, value, shown))
    if not failures and len(found) > len(case.spans):
        failures.append(Failure("false alarm", case, case.spans[0][2], shown))
    return failures


def _hiding(case: Case, mode: Mode) -> list[Failure]:
    hidden = PiiHider(mode, seeded_secret(1)).hide(case.text, "document")
    values = [value for _, _, value in case.spans]
    shown = f"{mode} gave {hidden!r}"
    failures = [Failure(f"{mode} left", case, value, shown) for value in values if value.text in hidden]
    if mode == "drop" or failures:
        return failures
    around, position = [], 0
    for start, end, _ in case.spans:
        around.append(case.text[position:start])
        position = end
    around.append(case.text[position:])
    if not re.fullmatch("(?s:.+?)".join(map(re.escape, around)), hidden):
        return [Failure(f"{mode} changed more", case, values[0], shown)]
    again = [span.type for span in find_pii(hidden)] if mode == "replace" else []
    if mode == "replace" and again != [value.type for value in values]:
        return [Failure("not found again", case, values[0], f"{shown}\n  in it  {again}")]
    return []
