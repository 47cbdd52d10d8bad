"""Which pieces begin a morpheme, by mecab-ko, so that morphemes can be masked whole.

Every eojeol is analysed by itself, without its neighbours: an eojeol costs once however often it stands in the text,
and its pieces never depend on where batches are cut. The price is what only neighbours could tell: 나는 is "I" or
"flying". Morphemes are slices of the text as it stands: 했다 (did) is 했|다, not the 하|았|다 of the dictionary.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from corpus.documents.mecab import LONGEST_ANALYSED, morpheme_begins


def mark_morphemes(eojeols: Sequence[str], lengths: NDArray[np.int64], offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether a piece begins an eojeol, or its first character a morpheme.

    Where several pieces begin at one character (bytes of a syllable, 漢 read as 漢字), only the first of them counts.

    Args:
        lengths: pieces of each eojeol, which lie one behind the other; may be 0.
        offsets: character of its eojeol at which each piece begins.
    """
    characters = np.array([len(eojeol) for eojeol in eojeols], np.int64)
    firsts = np.cumsum(characters) - characters
    begins = np.zeros(characters.sum(), bool)
    begins[
        [first + place for first, eojeol in zip(firsts.tolist(), eojeols, strict=True) for place in find_begins(eojeol)]
    ] = True
    marks = begins[np.repeat(firsts, lengths) + offsets]
    marks[1:] &= offsets[1:] > offsets[:-1]
    marks[(np.cumsum(lengths) - lengths)[lengths > 0]] = True
    return marks


def find_begins(eojeol: str) -> list[int]:
    """Characters of an eojeol at which morphemes begin, ascending; only the first of an eojeol that is very long.

    The analyser takes a NUL for the end and knows composed syllables only. So it sees the text without control
    characters, composed (NFC), and its findings are traced back.
    """
    if len(eojeol) > LONGEST_ANALYSED:
        return [0]
    if eojeol.isprintable() and unicodedata.is_normalized("NFC", eojeol):
        return morpheme_begins(eojeol)
    kept = [place for place, character in enumerate(eojeol) if character.isprintable()]
    text = "".join(eojeol[place] for place in kept)
    homes = _trace_back(text)
    return [kept[homes[begin]] for begin in morpheme_begins(unicodedata.normalize("NFC", text)) if begin in homes]


def _trace_back(text: str) -> dict[int, int]:
    """Where in ``text`` the characters of its NFC begin; of one that becomes two, the second is left out."""
    # the last of the places before which as much is composed is where the next character begins
    return {len(unicodedata.normalize("NFC", text[:place])): place for place in range(len(text))}
