"""Where the morphemes of an eojeol begin, by mecab-ko (paper section 4.1).

The window is cleaned first, which shuts the traps of the analyser out (``corpus.documents.mecab``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from corpus.documents.mecab import LONGEST_ANALYSED, morphemes_of
from tokenizer.words import bert_words


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
