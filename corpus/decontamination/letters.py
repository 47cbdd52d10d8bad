"""Letters that look alike count as one: full-width digits and Latin, half-width and loose jamo (ㅋ, the laugh)."""

from __future__ import annotations

import unicodedata
from functools import cache

import numpy as np

from corpus.folding import letter_table

FULL_AND_HALF_WIDTH = range(0xFF01, 0xFFDD)
COMPATIBILITY_JAMO = range(0x3131, 0x3164)


@cache
def alike_letters() -> np.ndarray:
    """``letter_table()`` with one code point for all letters that look alike; uint32, one for each code point."""
    letter_C = letter_table().copy()
    for jamo in COMPATIBILITY_JAMO:  # NFKC gives the conjoining jamo, which text holds alone when it was made by NFKC
        conjoining = unicodedata.normalize("NFKC", chr(jamo))
        if len(conjoining) == 1:
            letter_C[ord(conjoining)] = jamo
    for code in FULL_AND_HALF_WIDTH:
        plain = unicodedata.normalize("NFKC", chr(code))
        if len(plain) == 1:
            letter_C[code] = letter_C[ord(plain)]
    letter_C.flags.writeable = False
    return letter_C
