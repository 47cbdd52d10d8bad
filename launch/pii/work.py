"""What is done to every text: its personal data is found, or hidden. The one place that knows the detector's interface.

Texts become NFC first, as spans count characters of that form; a text in which nothing is found stays as it was.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from corpus.documents.errors import BadInput
from corpus.pii.detect import Span, find_pii
from corpus.pii.key import random_secret, read_key, seeded_secret
from corpus.pii.protect import MODES, Protection
from corpus.pii.types import ALL_TYPES

SpanRow = list[Any] | dict[str, Any]


@dataclass(frozen=True, slots=True)
class Finding:
    """How personal data is shown: ``explains`` adds score and reasons to each span."""

    types: frozenset[str] | None = None
    explains: bool = False

    def spans(self, text: str, label: str = "") -> list[Span]:
        return find_pii(text, self.types, label)

    def shown(self, span: Span) -> SpanRow:
        """``[start, end, TYPE]``, or an object that says why, too."""
        if not self.explains:
            return [span.start, span.end, span.type]
        why = list(span.why)
        return {"start": span.start, "end": span.end, "type": span.type, "score": round(span.score, 3), "why": why}


@dataclass(frozen=True, slots=True)
class Hiding:
    """How personal data is hidden; equal values map alike inside a document."""

    protection: Protection = field(repr=False)

    @property
    def drops(self) -> bool:
        return self.protection.mode == "drop"

    def hidden(self, text: str, document: str, label: str = "") -> str:
        """``text`` without personal data; unchanged where there is none."""
        composed = nfc(text)
        hidden = self.protection.hide(composed, document, label)
        return text if hidden == composed else hidden


def read_types(names: str | None) -> frozenset[str] | None:
    """Types of a list such as ``TEL,PERSON``; None for the paper's sixteen."""
    if names is None:
        return None
    wanted = [name.strip().upper() for name in names.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in ALL_TYPES]
    if unknown or not wanted:
        raise BadInput(f"--types {names}: no type {', '.join(unknown) or 'named'}; there are {', '.join(ALL_TYPES)}")
    return frozenset(wanted)


def read_protection(
    mode: str, seed: int | None, key_file: Path | None, key_variable: str | None, types: frozenset[str] | None
) -> Protection:
    """How to hide: by a random secret of this run, kept nowhere, or repeatably where a seed is given."""
    if mode not in MODES:
        raise BadInput(f"--mode {mode}: no such mode; there are {', '.join(MODES)}")
    if seed is not None and (key_file or key_variable):
        raise BadInput("--seed and a key: with a key a value maps alike in all runs, so leave --seed out")
    key = read_key(key_file, key_variable)
    secret = random_secret() if seed is None else seeded_secret(seed)
    return Protection(mode, secret, key, types)


def nfc(text: str) -> str:
    """The composed form, in which Hangul syllables are single characters."""
    return unicodedata.normalize("NFC", text)
