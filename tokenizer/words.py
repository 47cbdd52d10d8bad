"""BERT words of an eojeol, cut at punctuation and Han characters, and the morphemes inside them.

The normalizer and the pre-tokenizer of the library make the words, so trainer and encoder agree. Morphemes are slices
of the text by mecab-ko (paper section 4.1) or another analyser. With jamo_fallback, a vocabulary is written in jamo
(``decompose``), and characters that are neither ASCII nor Hangul are separated from words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import accumulate, groupby, pairwise

from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from corpus.documents.mecab import MAX_ANALYZED_CHARS, split_morphemes

LONGEST_WORD = 100  # characters (jamo if decomposed); longer words are [UNK] in WordPiece

MODERN_JAMO = (*map(chr, range(0x1100, 0x1113)), *map(chr, range(0x1161, 0x1176)), *map(chr, range(0x11A8, 0x11C3)))
TYPED_JAMO = tuple(map(chr, range(0x3131, 0x3164)))  # ㄱ … ㅣ, compatibility jamo, as in ㅋㅋ
_BLOCKS_OF_OLD_HANGUL = ((0x1100, 0x1200), (0x3164, 0x318F), (0xA960, 0xA97D), (0xD7B0, 0xD7C7), (0xD7CB, 0xD7FC))
_HALF_WIDTH_JAMO = ((0xFFA0, 0xFFBF), (0xFFC2, 0xFFC8), (0xFFCA, 0xFFD0), (0xFFD2, 0xFFD8), (0xFFDA, 0xFFDD))
OLD_JAMO = tuple(
    sorted({chr(c) for a, b in (*_BLOCKS_OF_OLD_HANGUL, *_HALF_WIDTH_JAMO) for c in range(a, b)} - {*MODERN_JAMO})
)  # all other Hangul letters: of old Hangul, and half-width forms

_PUNCTUATION = "".join(chr(code) for code in range(0x21, 0x7F) if not chr(code).isalnum())  # each a word of its own

# Most eojeols have only these characters; for them one pattern replaces both rules and is twenty times as fast.
_LETTERS = "0-9A-Za-zㄱ-ㅎㅏ-ㅣ가-힣"
_SIMPLE = re.compile(f"[{_LETTERS}{re.escape(_PUNCTUATION)}]+")
_SIMPLE_WORD = re.compile(f"[{_LETTERS}]+|[{re.escape(_PUNCTUATION)}]")


def bert_normalizer(*, decomposes: bool = False) -> BertNormalizer:
    """A normalizer that drops control characters and separates Han characters, and decomposes if asked."""
    return BertNormalizer(clean_text=True, handle_chinese_chars=True, strip_accents=decomposes, lowercase=False)


_NORMALIZER = bert_normalizer()
_DECOMPOSER = BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False)
_PRE_TOKENIZER = BertPreTokenizer()
LIST_DOT = "ㆍ"  # an old letter, used in lists of laws; analysers treat it as a part of a noun
_LETTERS_OF_WORDS = frozenset((*MODERN_JAMO, *TYPED_JAMO, *filter(str.isalnum, map(chr, range(0x80)))))


def bert_words(eojeol: str) -> list[str]:
    """Words of one eojeol, each encoded separately; empty if it has only control characters.

    >>> bert_words("연구자이다.")
    ['연구자이다', '.']
    """
    if _SIMPLE.fullmatch(eojeol):
        return _SIMPLE_WORD.findall(eojeol)
    return [word for word, _ in _PRE_TOKENIZER.pre_tokenize_str(_NORMALIZER.normalize_str(eojeol))]


@cache
def is_own_word(character: str) -> bool:
    """Whether the character is always a word of its own (punctuation, Han)."""
    return len(bert_words(f"가{character}")) > 1


def decompose(text: str) -> str:
    """Syllables as conjoining jamo, letters without accents (NFD without marks), for jamo_fallback."""
    return _DECOMPOSER.normalize_str(text)


@cache
def is_separated(character: str) -> bool:
    """Whether jamo_fallback separates the character from words: a symbol, an emoji, a foreign letter, an old jamo.

    Inside a word, it would make the whole word [UNK] if it is not in the vocabulary.

    >>> [is_separated(character) for character in "가aé😀①ß漢.\u200d"]
    [False, False, False, True, True, True, False, False, False]
    """
    if is_own_word(character) or not bert_words(character):
        return False
    return not _LETTERS_OF_WORDS.issuperset(decompose(character))


def split_separated(words: Sequence[str]) -> list[str]:
    """BERT words, split at separated characters.

    >>> split_separated(["안녕😀하세요", "."])
    ['안녕', '😀', '하세요', '.']
    """
    cut: list[str] = []
    for word in words:
        if _SIMPLE.fullmatch(word):
            cut.append(word)
            continue
        for apart, characters in groupby(word, is_separated):
            run = list(characters)
            cut += run if apart else ["".join(run)]
    return cut


def split_words(
    words: Sequence[str], left: str, right: str, analyse: Callable[[str], list[str]] = split_morphemes
) -> list[list[str]]:
    """Morphemes of each BERT word of one eojeol as slices; ``left``, ``right``: neighbors, or empty."""
    eojeol = "".join(words)
    if not 1 < len(eojeol) <= MAX_ANALYZED_CHARS:
        return [[word] for word in words]
    before, after = _clean(left), _clean(right)
    surfaces = iter(analyse(" ".join(filter(None, (before, eojeol, after))).replace(LIST_DOT, "·")))
    _take(surfaces, len(before))
    own = _take(surfaces, len(eojeol))  # no morpheme reaches over a space
    return [own] if len(words) == 1 and LIST_DOT not in eojeol else _cut_at_words(own, words)


def _clean(text: str) -> str:
    """Text without control characters and spaces; most text has none, and the check is fast."""
    return text if text.isprintable() and " " not in text else "".join(bert_words(text))


def _take(surfaces: Iterator[str], length: int) -> list[str]:
    taken = []
    while length > 0:
        surface = next(surfaces)
        taken.append(surface)
        length -= len(surface)
    return taken


def _cut_at_words(morphemes: list[str], words: Sequence[str]) -> list[list[str]]:
    """Morphemes of each word; one that crosses the end of a word is split there."""
    cuts = set(accumulate(map(len, morphemes)))
    split, begin = [], 0
    for word in words:
        inner = [place for place in range(1, len(word)) if begin + place in cuts]
        split.append([word[a:b] for a, b in pairwise((0, *inner, len(word)))])
        begin += len(word)
    return split
