"""Where the morphemes of an eojeol begin, by mecab-ko (paper section 4.1).

Surface slices only: a contraction such as 했다 is cut 했|다 and never rewritten to 하|았|다, so pieces stay text.
The analyser has traps, and cleaning the window first shuts them out: spaces in front shift every position it reports,
NUL ends the text, and U+3000 and its like come back as morphemes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from itertools import pairwise

from mecab import MeCab
from mecab.utils import create_lattice

from tokenizer.words import bert_words

LONGEST_ANALYSED = 200  # characters; longer eojeols are addresses and tables, and cost the analyser memory


@cache
def _analyser() -> MeCab:
    return MeCab()


def morpheme_starts(text: str) -> list[int]:
    """Positions at which a morpheme begins; ``text`` is cleaned and begins with no space."""
    lattice = create_lattice(text)
    # The public parse() builds a record per morpheme and takes twice the time; only positions are needed.
    _analyser()._tagger.parse(lattice)
    return [span[0] for span, _ in lattice]


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
    before, after = "".join(bert_words(left)), "".join(bert_words(right))
    offset = len(before) + 1 if before else 0
    starts = {start - offset for start in morpheme_starts(" ".join(filter(None, (before, eojeol, after))))}
    split, begin = [], 0
    for word in words:
        end = begin + len(word)
        cuts = [begin, *(position for position in range(begin + 1, end) if position in starts), end]
        split.append([eojeol[a:b] for a, b in pairwise(cuts)])
        begin = end
    return split


def analyser_versions() -> dict[str, str]:
    """What cut the text, for the card and the statistics."""
    return {name: version(name) for name in ("python-mecab-ko", "python-mecab-ko-dic")}
