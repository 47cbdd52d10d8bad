"""Text as BERT sees it before WordPiece: eojeols, the words that punctuation and Han characters cut out of them, and
where morphemes begin inside these.

The rules for words are the library's own normaliser and pre-tokeniser, so the trainer cannot drift from the encoder.
Lowercasing and accent stripping are off: either would take Hangul syllables apart and make every Korean word [UNK].

Morphemes are mecab-ko's (paper section 4.1), as surface slices. The analyser has traps (``corpus.documents.mecab``);
cleaning its input first avoids them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate, pairwise

from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from corpus.documents.mecab import LONGEST_ANALYSED, morphemes_of

LONGEST_WORD = 100  # characters; WordPiece makes [UNK] of longer ones

_PUNCTUATION = "".join(chr(code) for code in range(0x21, 0x7F) if not chr(code).isalnum())  # each a word of its own

# Most eojeols hold nothing but these, and the two rules on them are one pattern, twenty times as fast.
_LETTERS = "0-9A-Za-zㄱ-ㅎㅏ-ㅣ가-힣"
_SIMPLE = re.compile(f"[{_LETTERS}{re.escape(_PUNCTUATION)}]+")
_SIMPLE_WORD = re.compile(f"[{_LETTERS}]+|[{re.escape(_PUNCTUATION)}]")


def bert_normalizer() -> BertNormalizer:
    """Drops control characters and sets Han characters apart; changes no other character."""
    return BertNormalizer(clean_text=True, handle_chinese_chars=True, strip_accents=False, lowercase=False)


_NORMALIZER = bert_normalizer()
_PRE_TOKENIZER = BertPreTokenizer()


def bert_words(eojeol: str) -> list[str]:
    """Words of one eojeol, each encoded on its own; empty where only control characters were in it.

    >>> bert_words("연구자이다.")
    ['연구자이다', '.']
    """
    if _SIMPLE.fullmatch(eojeol):
        return _SIMPLE_WORD.findall(eojeol)
    return [word for word, _ in _PRE_TOKENIZER.pre_tokenize_str(_NORMALIZER.normalize_str(eojeol))]


@cache
def stands_alone(character: str) -> bool:
    """Whether the character is always a word of its own (punctuation, Han) and so never continues one."""
    return len(bert_words(f"가{character}")) > 1


def split_words(words: Sequence[str], left: str, right: str) -> list[list[str]]:
    """Morphemes of each BERT word of one eojeol; joined, they give the word back.

    Args:
        left, right: neighbours as they stand in the text; empty at the ends of a sentence.
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
