"""Hangul that is never [UNK]: what a vocabulary has no piece for is rewritten as what it has.

| in the text | becomes | because |
|---|---|---|
| 뷁, not a piece | ᄇ ᅰ ᆰ, conjoining jamo | one syllable without a piece makes [UNK] of its whole word |
| ᄏᄏ, conjoining jamo | ㅋㅋ, compatibility jamo | people write the second; NFKC (KLUE-NER) turns it into the first |
| 한국 in NFD | 한국 in NFC | macOS writes file names so |

The rules live in tokenizer.json and need no code of ours. Their price: text in NFD has offsets that cover the first
jamo of each syllable, encoding takes 1.3 times as long, and ports that read vocab.txt alone do not know them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator

from tokenizers.normalizers import NFC, Normalizer, Precompiled, Sequence

from tokenizer.building.charsmap import precompile
from tokenizer.words import bert_normalizer

SYLLABLES = tuple(map(chr, range(0xAC00, 0xD7A4)))  # 가 … 힣
_LEADS = tuple(map(chr, range(0x1100, 0x1113)))
_VOWELS = tuple(map(chr, range(0x1161, 0x1176)))
_TAILS = tuple(map(chr, range(0x11A8, 0x11C3)))
CONJOINING = _LEADS + _VOWELS + _TAILS  # the 67 modern ones, of which NFD makes syllables
COMPATIBILITY = tuple(map(chr, range(0x3131, 0x3164)))  # the 51 modern ones, as typed: ㄱ … ㅣ
ALWAYS_KNOWN = (*map(chr, range(0x21, 0x7F)), *CONJOINING, *COMPATIBILITY)

_TAIL_LETTERS = "ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ"
ISOLATED = {
    **{unicodedata.normalize("NFKC", letter): letter for letter in COMPATIBILITY},
    **dict(zip(_TAILS, _TAIL_LETTERS, strict=True)),
}  # conjoining jamo outside a syllable → the same letter, standing alone


def hardened_normalizer(known: Collection[str]) -> Normalizer:
    """NFC, then jamo as far as the vocabulary has pieces for them, then BERT's own rules.

    A character is *complete* if it has both pieces, bare and ``##``: then it can stand anywhere, and a word of complete
    characters is never [UNK], for the longest match ends with the single character at the latest. So a syllable that is
    not complete becomes its jamo if those are, even inside a longer piece, which is then never used; and an isolated
    jamo becomes its letter unless that has fewer pieces.

    Args:
        known: entries of the vocabulary, continuing ones with their ``##``.

    Returns:
        A normaliser that tokenizer.json can hold. Two limits: a combining mark of two bytes (U+0300 to U+07FF) right
        after a rewritten character is lost, because the library replaces such a pair whole (none in 92 million
        characters of Korean text, and keeping the two apart would make encoding 8 % slower); and old Hangul, which
        needs other jamo, is left as it is.
    """
    replacements = dict(_replacements(frozenset(known)))
    rewriting = [Precompiled(precompile(replacements))] if replacements else []
    return Sequence([NFC(), *rewriting, bert_normalizer()])


def unwritable(known: Collection[str]) -> list[str]:
    """Modern Hangul that can still make a word [UNK] under the hardened normaliser, in order of code point."""
    pieces = frozenset(known)
    rewritten = dict(_replacements(pieces))
    hangul = (*CONJOINING, *COMPATIBILITY, *SYLLABLES)
    return [char for char in hangul if any(_forms(part, pieces) < 2 for part in rewritten.get(char, char))]


def _replacements(pieces: frozenset[str]) -> Iterator[tuple[str, str]]:
    for syllable in SYLLABLES:
        jamo = unicodedata.normalize("NFD", syllable)
        if _forms(syllable, pieces) < 2 and all(_forms(part, pieces) == 2 for part in jamo):
            yield syllable, jamo
    for jamo, letter in ISOLATED.items():
        if 0 < _forms(letter, pieces) >= _forms(jamo, pieces):
            yield jamo, letter


def _forms(character: str, pieces: frozenset[str]) -> int:
    """How many of its two pieces a character has."""
    return (character in pieces) + (f"##{character}" in pieces)
