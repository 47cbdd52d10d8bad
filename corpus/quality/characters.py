"""Character classes of many texts at once, for the quality rules: one table look-up per character.

Sums over ranges of characters are differences of cumulative sums, so a rule costs the same for long and short texts.
Shapes: C characters of all texts, each followed by a line end; T texts.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

SPACE, LINE_END, LETTER, HANGUL, RARE, SYMBOL, FINAL = (1 << n for n in range(7))
# characters of words without content, and marks that end a sentence, as in datatrove
SYMBOLS = "!/—”:％１〈&(、━\\【#%「」，】；+^]~“《„';’{|∶´[=-`*．（–？！：$～«〉,><》)?）。…@_.\"}►»" + "".join(
    map(chr, (*range(32), *range(127, 160)))
)
UNASSIGNED = 0x40000  # no letter or space has a higher code point
FINALS = ".!?。．！？｡﹒﹖﹗‼‽⁇⁈⁉"


@cache
def class_table() -> np.ndarray:
    """The classes of every code point, one bit each; uint8, read-only.

    ``RARE``: syllables that are not among the 2,350 of KS X 1001, one in a thousand in Korean text.
    """
    table = np.zeros(sys.maxunicode + 1, np.uint8)
    for is_in, bit in ((str.isspace, SPACE), (str.isalpha, LETTER)):
        table[:UNASSIGNED] |= np.fromiter(map(is_in, map(chr, range(UNASSIGNED))), bool, UNASSIGNED) * np.uint8(bit)
    for first, last in ((0x1100, 0x11FF), (0x3131, 0x318E), (0xA960, 0xA97F), (0xAC00, 0xD7A3), (0xD7B0, 0xD7FF)):
        table[first : last + 1] |= HANGUL
    table[[code for code in range(0xAC00, 0xD7A4) if min(chr(code).encode("cp949")) < 0xA1]] |= RARE
    table[[ord(character) for character in SYMBOLS + FINALS]] |= SYMBOL
    table[[ord(character) for character in FINALS]] |= FINAL
    table[ord("\n")] |= LINE_END
    return table


class Characters(NamedTuple):
    """Code points and classes of joined texts; ``first_T`` and ``end_T`` are the places of each text."""

    code_C: np.ndarray
    class_C: np.ndarray
    first_T: np.ndarray
    end_T: np.ndarray

    def is_any(self, classes: int) -> np.ndarray:
        return (self.class_C & classes) != 0

    def number_of(self, is_counted_C: np.ndarray) -> np.ndarray:
        return np.diff(sums(is_counted_C)[np.stack([self.first_T, self.end_T])], axis=0)[0]


def read_characters(texts: Sequence[str]) -> Characters:
    joined = "\n".join([*texts, ""])
    code_C = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32)
    end_T = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)) + 1) - 1
    first_T = np.concatenate([[0], end_T[:-1] + 1]).astype(np.int64) if len(texts) else end_T
    return Characters(code_C, class_table()[code_C], first_T, end_T)


def sums(values_X: np.ndarray) -> np.ndarray:
    """``sums(x)[b] - sums(x)[a]`` is the sum of ``x[a:b]``."""
    out = np.zeros(len(values_X) + 1, np.uint64 if values_X.dtype == np.uint64 else np.int64)
    np.cumsum(values_X, out=out[1:], dtype=out.dtype)
    return out
