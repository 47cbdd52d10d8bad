"""The characters of a vocabulary: each is a piece, so a word of these characters is never [UNK].

Plain vocabularies (KLUE's) have the most frequent characters, each with its ``##`` form; builder malmoi adds syllables
and symbols. With jamo_fallback, ASCII, all jamo and emoji are always pieces, and others are added by frequency.
Characters that are always a word of their own (``tokenizer.words.is_separated``) have no ``##`` form.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from tokenizer.building.merges import PREFIX
from tokenizer.words import MODERN_JAMO, OLD_JAMO, TYPED_JAMO, bert_words, decompose, is_own_word, is_separated

log = logging.getLogger(__name__)

LARGEST_ALPHABET_SHARE = 0.5  # of the learned entries, so that a small vocabulary does not consist of characters only

ASCII = tuple(map(chr, range(0x21, 0x7F)))
# faces, hands, hearts, and modifiers of keycaps, skin tones and flags
_EMOJI = (
    (0x20E3, 0x20E4), (0x2600, 0x2605), (0x2661, 0x2662), (0x2665, 0x2666), (0x26A1, 0x26A2), (0x270A, 0x270E),
    (0x2728, 0x2729), (0x2757, 0x2758), (0x2764, 0x2765), (0x1F1E6, 0x1F200), (0x1F31E, 0x1F320), (0x1F338, 0x1F339),
    (0x1F340, 0x1F341), (0x1F370, 0x1F371), (0x1F37A, 0x1F37C), (0x1F380, 0x1F383), (0x1F388, 0x1F38B),
    (0x1F3B5, 0x1F3B7), (0x1F3FB, 0x1F400), (0x1F436, 0x1F437), (0x1F440, 0x1F451), (0x1F481, 0x1F482),
    (0x1F48B, 0x1F48C), (0x1F493, 0x1F4A6), (0x1F4A8, 0x1F4AB), (0x1F4AF, 0x1F4B0), (0x1F525, 0x1F526),
    (0x1F5A4, 0x1F5A5), (0x1F600, 0x1F650), (0x1F90C, 0x1F930), (0x1F937, 0x1F938), (0x1F970, 0x1F977),
    (0x1F979, 0x1F97B), (0x1F9E1, 0x1F9E2), (0x1FAE0, 0x1FAE9), (0x1FAF6, 0x1FAF7),
)  # fmt: skip
EMOJI = tuple(chr(code) for first, end in _EMOJI for code in range(first, end))
ALWAYS_KNOWN = (*ASCII, *MODERN_JAMO, *TYPED_JAMO, *OLD_JAMO, *EMOJI)
# ㅋㅋ, currency, arrows, circled numbers, shapes and units: pieces if they take at most a sixteenth of the vocabulary
COMMON = (
    *TYPED_JAMO,
    *"₩€℃℉№ⅠⅡⅢⅣⅤⅥⅦⅧⅨⅩ←↑→↓↔↕↖↗↘↙⇐⇑⇒⇓⇔⇦⇧⇨⇩①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳■□▲△▶▷▼▽◀◁◆◇◈○◎●★☆♡♥♪㈜㉿"
    "㎈㎉㎍㎎㎏㎐㎑㎒㎓㎔㎕㎖㎗㎘㎙㎚㎛㎜㎝㎞㎟㎠㎡㎢㎣㎤㎥㎦㎾㎿㏄㏈㏊",
)
SYLLABLES_SHARE = 1 / 7  # of the entries: 2,285 syllables in 32,000 entries, each with and without ##
KS_X_1001 = tuple(bytes((row, cell)).decode("euc-kr") for row in range(0xB0, 0xC9) for cell in range(0xA1, 0xFF))


def single_pieces(characters: Collection[str], *, jamo_fallback: bool) -> list[str]:
    """The pieces of characters by code point: all without ``##``, then with ``##`` those that can continue a word."""
    ordered = sorted(characters)
    return [*ordered, *(PREFIX + character for character in ordered if _pieces(character, jamo_fallback) == 2)]


def _pieces(character: str, jamo_fallback: bool) -> int:
    return 1 if is_own_word(character) or (jamo_fallback and is_separated(character)) else 2


ALWAYS_PIECES = tuple(single_pieces(ALWAYS_KNOWN, jamo_fallback=True))  # of every vocabulary with jamo_fallback


def choose_alphabet(
    counts: Mapping[str, int], max_characters: int, size: int, *, jamo_fallback: bool, complete: bool = False
) -> list[str]:
    """At most ``max_characters`` frequent characters that fit their share of ``size`` learned entries, by code point.

    Characters that are always pieces are included and do not count; a plain alphabet has them if it is ``complete``.
    """
    chosen = _always(counts, size, jamo_fallback) if jamo_fallback or complete else set()
    seen = _as_encoded(counts) if jamo_fallback else counts
    candidates = [character for character in seen.keys() - chosen if bert_words(character)]
    ranked = sorted(candidates, key=lambda c: (-seen[c], c))[:max_characters]
    free = int(size * LARGEST_ALPHABET_SHARE) - len(single_pieces(chosen, jamo_fallback=jamo_fallback))
    for number, character in enumerate(ranked):
        free -= _pieces(character, jamo_fallback)
        if free < 0:
            log.warning(
                "%d entries have room for %d of the %d most frequent characters that are not always pieces; a larger "
                "vocab_size keeps more", size, number, len(ranked),
            )  # fmt: skip
            break
        chosen.add(character)
    return sorted(chosen)


def _always(counts: Mapping[str, int], size: int, jamo_fallback: bool) -> set[str]:
    """Characters that are pieces at any frequency: all jamo or the most frequent syllables, and symbols if they fit."""
    chosen = {*ALWAYS_KNOWN} if jamo_fallback else set()
    if 16 * len(single_pieces(COMMON, jamo_fallback=jamo_fallback)) <= size:
        chosen.update(COMMON)
    if not jamo_fallback:
        syllables = (c for c in {*counts, *(KS_X_1001 if chosen else ())} if "가" <= c <= "힣")
        ranked = sorted(syllables, key=lambda c: (-counts.get(c, 0), c))
        chosen.update(ranked[: int(size * SYLLABLES_SHARE / 2)])
    return chosen


def _as_encoded(counts: Mapping[str, int]) -> Counter[str]:
    """Counts of the characters after decomposition."""
    parts: Counter[str] = Counter()
    for character, count in counts.items():
        for part in character if is_separated(character) else decompose(character):
            parts[part] += count
    return parts


def missing_pieces(vocabulary: Sequence[str]) -> list[str]:
    """Pieces that jamo_fallback needs and this vocabulary does not have."""
    known = set(vocabulary)
    return [piece for piece in ALWAYS_PIECES if piece not in known]
