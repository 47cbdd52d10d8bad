"""Where the morphemes of an eojeol begin, by mecab-ko (paper section 4.1).

Surface slices only: a contraction such as 했다 is cut 했|다 and never rewritten to 하|았|다, so pieces stay text.
The analyser has traps, and cleaning the window first shuts them out: spaces in front shift every position it reports,
NUL ends the text, and U+3000 and its like come back as morphemes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import version
from itertools import accumulate, pairwise
from typing import Any

from mecab import MeCab
from mecab.utils import create_lattice

from tokenizer.words import bert_words

_SURFACE = re.compile("^(.+?)\t", re.MULTILINE)
LONGEST_ANALYSED = 200  # characters; longer eojeols are addresses and tables, and cost the analyser memory


@cache
def _analyser() -> tuple[Any, Any]:
    # One lattice for all texts, read as text: the public parse() builds a record per morpheme and takes twice the time.
    return MeCab()._tagger, create_lattice("")


def morphemes_of(text: str) -> list[str]:
    """Surfaces of the morphemes of a text that is clean and begins with no space; joined, the text without spaces."""
    tagger, lattice = _analyser()
    lattice.set_sentence(text)
    tagger.parse(lattice)
    return _SURFACE.findall(lattice.to_string())


def split_words(words: Sequence[str], left: str, right: str) -> list[list[str]]:
    """Morphemes of each BERT word of one eojeol.

    Args:
        words: the BERT words that make up the eojeol.
        left: neighbours as they stand in the text; empty at the end of a sentence.
        right: the same, on the other side.

    Returns:
        one list for each word; joined, it gives the word back.
    """
    eojeol = "".join(words)
    if not 1 < len(eojeol) <= LONGEST_ANALYSED:
        return [[word] for word in words]
    before, after = _clean(left), _clean(right)
    surfaces = iter(morphemes_of(" ".join(filter(None, (before, eojeol, after)))))
    _take(surfaces, len(before))
    own = _take(surfaces, len(eojeol))  # no morpheme reaches over a space
    return [own] if len(words) == 1 else _cut_at_words(own, words)


def _clean(text: str) -> str:
    """Without control characters and blanks; most text has none, and the check is fast."""
    return text if text.isprintable() and " " not in text else "".join(bert_words(text))


def _take(surfaces: Iterator[str], length: int) -> list[str]:
    taken = []
    while length > 0:
        surface = next(surfaces)
        taken.append(surface)
        length -= len(surface)
    return taken


def _cut_at_words(morphemes: list[str], words: Sequence[str]) -> list[list[str]]:
    """Morphemes of each word; one that reaches over the end of a word is cut there."""
    cuts = set(accumulate(map(len, morphemes)))
    split, begin = [], 0
    for word in words:
        inner = [place for place in range(1, len(word)) if begin + place in cuts]
        split.append([word[a:b] for a, b in pairwise((0, *inner, len(word)))])
        begin += len(word)
    return split


def analyser_versions() -> dict[str, str]:
    """What cut the text, for the card and the statistics."""
    return {name: version(name) for name in ("python-mecab-ko", "python-mecab-ko-dic")}
