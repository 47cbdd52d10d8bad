"""Why words are [UNK], by the first character that causes it, and how many [UNK] replace Hangul.

WordPiece replaces a whole word if one character has no piece: one that is [UNK] by itself, or that follows another and
has no ``##`` form.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from tokenizers.models import WordPiece

from tokenizer.measuring.boundaries import word_spans
from tokenizer.measuring.encoder import Encoder, Span

EOJEOLS_PER_BATCH = 10_000

HANGUL = {
    "Hangul syllable": ((0xAC00, 0xD7A3),),
    "conjoining jamo": ((0x1100, 0x1112), (0x1161, 0x1175), (0x11A8, 0x11C2)),
    "compatibility jamo": ((0x3131, 0x3163),),
    "old or half-width Hangul": (
        (0x1100, 0x11FF), (0x3130, 0x318F), (0xA960, 0xA97F), (0xD7B0, 0xD7FF), (0xFFA0, 0xFFDC),
    ),
}  # fmt: skip
HOLDS_HANGUL = re.compile(r"[\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff\uffa0-\uffdc]")
TOO_LONG = "too long a word"
NO_CHARACTER = "no single character"
INVISIBLE = "invisible"
SYMBOL = "symbol or emoji"
KINDS = (*HANGUL, "Han", "Latin", "other letter", "digit", SYMBOL, INVISIBLE, TOO_LONG, NO_CHARACTER)


def kind_of_character(character: str) -> str:
    """One of ``KINDS``, except the last two."""
    code = ord(character)
    for kind, ranges in HANGUL.items():
        if any(first <= code <= last for first, last in ranges):
            return kind
    name, category = unicodedata.name(character, ""), unicodedata.category(character)
    if name.startswith(("CJK UNIFIED IDEOGRAPH", "CJK COMPATIBILITY IDEOGRAPH")):
        return "Han"
    if category in ("Cc", "Cf", "Cs"):
        return INVISIBLE
    if category[0] in "LM" and not name.startswith("VARIATION SELECTOR"):
        return "Latin" if "LATIN" in name else "other letter"
    return "digit" if category[0] == "N" else SYMBOL


def classify_unknown_words(encoder: Encoder, eojeols: Mapping[str, int]) -> tuple[dict[str, int], int]:
    """Number of BERT words with an [UNK] by kind, and of [UNK] that replace Hangul; ``eojeols``: with their counts."""
    alone: dict[str, bool] = {}
    counts: Counter[str] = Counter()
    over_hangul = 0
    is_wordpiece = isinstance(encoder.tokenizer.model, WordPiece)
    names = iter(eojeols)
    while batch := list(islice(names, EOJEOLS_PER_BATCH)):
        for eojeol, holes in zip(batch, encoder.unknown_spans(batch), strict=True):
            over_hangul += eojeols[eojeol] * sum(bool(HOLDS_HANGUL.search(eojeol, *hole)) for hole in holes)
            for begin, end in holes if is_wordpiece else _words_with(holes, eojeol):
                counts[_blame(encoder, eojeol[begin:end], alone)] += eojeols[eojeol]
    return {kind: counts[kind] for kind in KINDS if counts[kind]}, over_hangul


def _words_with(holes: Sequence[Span], eojeol: str) -> Iterator[Span]:
    ends = [last for _, last in holes]  # ascending: a search finds the first that ends inside or after a word
    for begin, end in word_spans(eojeol) or [(0, len(eojeol))]:
        place = bisect_right(ends, begin)
        if place < len(holes) and holes[place][0] < end:
            yield begin, end


def _blame(encoder: Encoder, word: str, alone: dict[str, bool]) -> str:
    """Kind of the character that causes the [UNK]; ``alone``: which characters are [UNK] by themselves."""
    model = encoder.tokenizer.model
    prefix = model.continuing_subword_prefix if isinstance(model, WordPiece) else ""
    if isinstance(model, WordPiece) and len(_normalized(encoder, word)) > model.max_input_chars_per_word:
        return TOO_LONG
    for position, character in enumerate(word):
        if character not in alone:
            alone[character] = any(encoder.unknown_spans([character]))
        if alone[character]:
            return kind_of_character(character)
        if position and prefix and not _can_continue(encoder, prefix, character):
            return kind_of_character(character)
    return NO_CHARACTER


def _can_continue(encoder: Encoder, prefix: str, character: str) -> bool:
    """Whether all normalized parts of a character (jamo, a letter without its accent) have ``##`` forms."""
    return all(encoder.tokenizer.token_to_id(prefix + part) is not None for part in _normalized(encoder, character))


def _normalized(encoder: Encoder, text: str) -> str:
    normalizer = encoder.tokenizer.normalizer
    return normalizer.normalize_str(text).strip() if normalizer else text
