"""Texts with their personal data marked, and the scores of the detector on them by register and by type.

The twelve files in ``registers/``, one a register, hold 300 texts with values and 100 that only look personal, all
invented, written before the rules they are to judge. A blank line parts texts, ``⟦TEL:010-0123-4567⟧`` marks a value,
``⟨200B⟩`` is the character of that code point, so invisible characters can be seen. A span is the value
alone, without particle, bank or port. ``extra_types.txt`` marks values of types outside the sixteen of paper Table 29,
and values of the sixteen in the same texts. The twenty files in ``registers_2/`` are a second set: 250 texts with 326
values and 150 without any, written by hand and without knowledge of the detector. ``registers_3/`` is a third one in
other registers: 200 texts with 173 values and 79 without any. ``registers_4/`` (420 texts, 325 values, 126 texts
without any) and ``registers_5/`` (100, 88, 20) have yet other registers.

``python -m tests.corpus.pii.marked_texts`` prints the tables, and ``… marked_texts registers_2`` those of the second
set; ``--misses`` lists what was missed and what was wrong.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.gold import match_spans, score_spans
from corpus.pii.detect import find_pii
from corpus.pii.types import PII_TYPES

FOLDER = Path(__file__).parent
REGISTERS = (
    "forum", "used_goods", "reviews", "petitions", "chat", "news",
    "cvs", "delivery", "code", "logs", "tables", "mixed_script",
)  # fmt: skip
EXTRA_TYPES = ("PERSON",)

_MARK = re.compile("⟦([A-Z_]+):([^⟦⟧]+)⟧")
_CODE_POINT = re.compile("⟨([0-9A-F]{2,5})⟩")

Found = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class MarkedText:
    """``spans`` are (start, end, type) in ``str`` indices of ``text``, sorted; an empty list marks a look-alike."""

    register: str
    text: str
    spans: list[Found]


def read_marked(path: Path) -> list[MarkedText]:
    """The texts of a file in order; raises ValueError on a bracket that is no part of a mark."""
    blocks = re.split("\n{2,}", path.read_text("utf-8").strip("\n"))
    return [MarkedText(path.stem, *unmark(block)) for block in blocks]


def unmark(block: str) -> tuple[str, list[Found]]:
    """The text without its marks, and the spans.

    >>> unmark("폰 ⟦TEL:010⟨200B⟩-0123-4567⟧로")
    ('폰 010\\u200b-0123-4567로', [(2, 16, 'TEL')])
    """
    shown = _CODE_POINT.sub(lambda code: chr(int(code[1], 16)), block)
    text, spans, end = "", [], 0
    for mark in _MARK.finditer(shown):
        text += shown[end : mark.start()]
        spans.append((len(text), len(text) + len(mark[2]), mark[1]))
        text, end = text + mark[2], mark.end()
    text += shown[end:]
    if re.search("[⟦⟧⟨⟩]", text):
        raise ValueError(f"a bracket that is no part of a mark: {block!r}")
    return text, spans


def read_registers(folder: str = "registers") -> list[MarkedText]:
    """All texts of all registers of a set."""
    names = REGISTERS if folder == "registers" else sorted(path.stem for path in (FOLDER / folder).glob("*.txt"))
    return [row for name in names for row in read_marked(FOLDER / folder / f"{name}.txt")]


@cache
def found_in(text: str) -> tuple[Found, ...]:
    """What the detector finds."""
    return tuple((span.start, span.end, span.type) for span in find_pii(text))


def score_set(rows: list[MarkedText]) -> dict[str, Any]:
    """Precision, recall and the like over all rows, as ``python -m benchmarks corpus`` counts them."""
    return score_spans([(row.text, row.spans) for row in rows], lambda text: list(found_in(text)))


def score_type(rows: list[MarkedText], name: str) -> dict[str, Any]:
    """The same over the values and predictions of one type."""
    return score_spans(
        [(row.text, [span for span in row.spans if span[2] == name]) for row in rows],
        lambda text: [span for span in found_in(text) if span[2] == name],
    )


def problems(rows: list[MarkedText]) -> Iterator[str]:
    """A line for each value that was missed and each prediction that is wrong."""
    for row in rows:
        right = match_spans(list(found_in(row.text)), row.spans)
        good = match_spans(row.spans, list(found_in(row.text)))
        for kind, spans, hit in (("missed", row.spans, right), ("wrong", found_in(row.text), good)):
            for start, end, name in spans:
                if (start, end, name) not in hit:
                    yield f"{row.register}\t{kind}\t{name}\t{row.text[start:end]!r}\t{row.text!r}"


def tables(rows: list[MarkedText]) -> str:
    """Scores over all rows, by register and by type; ``leak``: share of values less than half covered by anything."""
    lines = [f"{'':14}{'values':>7}{'P':>7}{'R':>7}{'leak':>7}{'flagged':>9}"]
    by_register: dict[str, list[MarkedText]] = {}
    for row in rows:
        by_register.setdefault(row.register, []).append(row)
    scored = {"all": score_set(rows), **{name: score_set(own) for name, own in by_register.items()}}
    scored |= {name: score_type(rows, name) for name in PII_TYPES}
    for name, scores in scored.items():
        own = by_register.get(name, rows)
        values = sum(name not in PII_TYPES or span[2] == name for row in own for span in row.spans)
        flagged = "" if name in PII_TYPES else f"{scores['flagged']:>5} / {sum(not row.spans for row in own)}"
        lines.append(
            f"{name:14}{values:7}{scores['precision']:7.3f}{scores['recall']:7.3f}"
            f"{1 - scores['covered_recall']:7.3f}{flagged:>9}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    chosen = [name for name in sys.argv if name.startswith("registers_")]
    everything = read_registers(*chosen)
    print(tables(everything))
    if "--misses" in sys.argv:
        print("\n".join(problems(everything)))
