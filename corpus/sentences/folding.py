"""Folding for comparisons: lower-case letters and digits only, for one text or for thousands at once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import numpy as np

NOT_LETTER_OR_DIGIT = re.compile(r"[\W_]+")
CODE_POINTS = 0x110000
TWO_LETTERS = "İ"  # the only letter whose lower case has two characters
FINAL_FORM = "Σ"  # the only letter whose lower case depends on its neighbors


def fold(text: str) -> str:
    """Lower-case letters and digits only."""
    return NOT_LETTER_OR_DIGIT.sub("", text.lower())


@cache
def letter_table() -> np.ndarray:
    """Code point of ``fold(character)`` for every code point, 0 if it is removed; uint32, read-only."""
    characters = "".join(map(chr, range(CODE_POINTS))).replace(TWO_LETTERS, TWO_LETTERS.lower()[0])
    folded = NOT_LETTER_OR_DIGIT.sub(lambda match: "\0" * len(match[0]), characters.lower())
    return np.frombuffer(folded.encode("utf-32-le", "surrogatepass"), np.uint32)


def fold_all(texts: Sequence[str], letter_C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Code points of the folded texts, concatenated, uint32, and the number of letters of each text, int64."""
    joined = "".join(texts)
    if FINAL_FORM in joined:
        texts = [fold(text) for text in texts]
        joined = "".join(texts)
    letters = letter_C[np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32)]
    positions = np.flatnonzero(letters)
    ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))
    return letters[positions], np.diff(np.searchsorted(positions, ends), prepend=0)
