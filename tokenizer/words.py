"""Text as BERT sees it before WordPiece: eojeols, and the words that punctuation and Han characters cut out of them.

The rules are the library's own normaliser and pre-tokeniser, so the trainer cannot drift from the encoder. Lowercasing
and accent stripping are off: either would take Hangul syllables apart and make every Korean word [UNK].
"""

from __future__ import annotations

import re
from functools import cache

from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

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
