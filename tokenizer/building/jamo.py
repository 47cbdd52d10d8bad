"""Hangul that is never [UNK]: what a vocabulary has no piece for is rewritten as what it has.

| in the text | becomes | because |
|---|---|---|
| 뷁, not a piece | ᄇ ᅰ ᆰ, conjoining jamo | one syllable without a piece makes [UNK] of its whole word |
| ᄏᄏ, conjoining jamo | ㅋㅋ, compatibility jamo | people write the second; NFKC (KLUE-NER) turns it into the first |
| 한국 in NFD | 한국 in NFC | macOS writes file names so |

The rules live in tokenizer.json as a ``Precompiled`` normaliser (sentencepiece's format) and need no code of ours:
```
4 bytes: size of the trie │ trie: double array of 32-bit units, UTF-8 bytes to a place │ replacements, each ended by NUL
```
Their price: text in NFD has offsets that cover the first jamo of each syllable, encoding takes 1.3 times as long, and
ports that read vocab.txt alone do not know them.
"""

from __future__ import annotations

import unicodedata
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from tokenizers.normalizers import NFC, Normalizer, Precompiled, Sequence

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

# the table of replacements; the bits of a unit are those of darts-clone (github.com/s-yata/darts-clone)
HAS_LEAF = 1 << 8  # a key ends in this node; its value lies in the unit at the node's base
IS_LEAF = 1 << 31
OFFSET_BITS = 10  # position XOR base stands above these bits; below them the label, HAS_LEAF and a shift we never need
LONGEST_OFFSET = 1 << 21
BLOCK = 256  # a reader looks at base XOR any byte, so the array ends with a whole block


def hardened_normalizer(known: Collection[str]) -> Normalizer:
    """NFC, then jamo as far as the vocabulary ``known`` has pieces for them, then BERT's own rules.

    A character is *complete* if it has both pieces, bare and ``##``: then it can stand anywhere, and a word of complete
    characters is never [UNK], for the longest match ends with the single character at the latest. So a syllable that is
    not complete becomes its jamo if those are, even inside a longer piece, which is then never used; and an isolated
    jamo becomes its letter unless that has fewer pieces.

    Two limits: a combining mark of two bytes (U+0300 to U+07FF) right after a rewritten character is lost, as the
    library replaces such a pair whole; and old Hangul, which needs other jamo, is left as it is.
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


def precompile(replacements: Mapping[str, str]) -> bytes:
    """Bytes for ``tokenizers.normalizers.Precompiled``, the same for any order of the mapping.

    The reader cuts text into grapheme clusters. One of fewer than six bytes is replaced **whole** by the value of the
    shortest key it begins with; any other is read character by character. So keys should be single characters, and a
    character that may be followed by a combining mark of two bytes must be kept apart from it (see jamo.py).

    Raises:
        ValueError: an empty key, or a NUL in a key or a value.
    """
    values, places = bytearray(), {}
    for value in sorted(set(replacements.values())):
        places[value] = len(values)
        values += value.encode() + b"\0"
    keys = {key.encode(): places[value] for key, value in replacements.items()}
    if b"" in keys or any(b"\0" in key for key in keys) or any("\0" in value for value in places):
        raise ValueError("a replaced text must not be empty, and neither it nor its replacement may hold NUL")
    trie = _lay_out(_trie(keys))
    return len(trie).to_bytes(4, "little") + trie + bytes(values)


@dataclass(slots=True)
class _Node:
    children: dict[int, _Node] = field(default_factory=dict)  # by byte, ascending
    value: int | None = None  # where the prefix is a key itself


def _trie(keys: Mapping[bytes, int]) -> _Node:
    root = _Node()
    for key, value in sorted(keys.items()):
        node = root
        for byte in key:
            node = node.children.setdefault(byte, _Node())
        node.value = value
    return root


def _lay_out(root: _Node) -> bytes:
    """Units of the double array, little-endian: the child for byte b of a node lies at the node's base XOR b.

    Laid out by first fit: no library, always the same bytes, 0.1 s for the 11,172 syllables, but quadratic where keys
    differ much.
    """
    units: dict[int, int] = {0: 0}  # by position; the root lies at 0
    bases: set[int] = {0}
    tried: dict[tuple[int, ...], int] = {}  # by labels: where the search for a base left off
    waiting = deque([(root, 0)])
    while waiting:
        node, position = waiting.popleft()
        labels = (*([] if node.value is None else [0]), *node.children)
        if not labels:  # the root of no keys at all
            continue
        base = _fit(labels, units, bases, tried.get(labels, 1))
        tried[labels] = base ^ labels[0]
        bases.add(base)
        offset = position ^ base
        assert offset < LONGEST_OFFSET, "more units than this simple layout can address"
        units[position] |= offset << OFFSET_BITS
        if node.value is not None:
            units[position] |= HAS_LEAF
            units[base] = IS_LEAF | node.value
        for byte, child in node.children.items():
            units[base ^ byte] = byte
            waiting.append((child, base ^ byte))
    blocks = max(units) // BLOCK + 1
    # an unused unit passes for a leaf, so that no byte, 0 included, leads there
    return b"".join(units.get(position, IS_LEAF).to_bytes(4, "little") for position in range(blocks * BLOCK))


def _fit(labels: tuple[int, ...], units: Mapping[int, int], bases: set[int], start: int) -> int:
    """The first base with room for all labels that no other node has (a shared one would lend it their children)."""
    position = start  # of the first label; what was taken before the start stays taken
    while True:
        base = position ^ labels[0]
        if base not in bases and not any(base ^ label in units for label in labels):
            return base
        position += 1
