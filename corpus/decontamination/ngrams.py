"""Documents as streams of letters, their n-grams as numbers, and a hash table that numbers known ones.

Sentences are folded, thousands at once, and joined, so that n-grams and windows run over their ends. Letters that look
alike count as one: full-width digits and Latin, half-width and loose jamo (ㅋ, the laugh). The hash table finds an
n-gram in one or two steps where a sorted array takes twenty; its price is 24 bytes an n-gram.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from corpus.sentences.folding import fold_all, letter_table

BATCH_CHARS = 40_000  # arrays of so many letters stay in the processor's cache
FULL_AND_HALF_WIDTH = range(0xFF01, 0xFFDD)
COMPATIBILITY_JAMO = range(0x3131, 0x3164)
CODE_POINT_BITS = 21
SLOTS_PER_CODE = 3
GOLDEN_64 = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: neighbouring codes fall far apart


@cache
def alike_letters() -> np.ndarray:
    """``letter_table()`` with one code point for all letters that look alike; uint32, one for each code point."""
    letter_C = letter_table().copy()
    for jamo in COMPATIBILITY_JAMO:  # NFKC gives the conjoining jamo, which text holds alone when it was made by NFKC
        conjoining = unicodedata.normalize("NFKC", chr(jamo))
        if len(conjoining) == 1:
            letter_C[ord(conjoining)] = jamo
    for code in FULL_AND_HALF_WIDTH:
        plain = unicodedata.normalize("NFKC", chr(code))
        if len(plain) == 1:
            letter_C[code] = letter_C[ord(plain)]
    letter_C.flags.writeable = False
    return letter_C


class Batch(NamedTuple):
    """L letters of some documents, one after another.

    Fields:
        first: number of the first sentence among those of all documents.
        letters_L: code points of folded text, uint32.
        sentence_L: number in the batch of each letter's sentence, int32.
        sizes_S, document_S: letters of each sentence, and number of its document, int32.
    """

    first: int
    letters_L: np.ndarray
    sentence_L: np.ndarray
    sizes_S: np.ndarray
    document_S: np.ndarray

    def stretches(self, reach: int) -> Iterator[slice]:
        """The letters in about ``BATCH_CHARS`` at a time, overlapping by ``reach``, the longest window."""
        count = max(1, len(self.letters_L) // BATCH_CHARS)
        size = max(1, -(-len(self.letters_L) // count))
        for start in range(0, len(self.letters_L), size):
            yield slice(max(0, start - reach), start + size)


def read_batches(documents: Iterable[Sequence[str]], letter_C: np.ndarray) -> Iterator[Batch]:
    """All documents in order, each whole in one batch of ``BATCH_CHARS`` or more."""
    batch: list[Sequence[str]] = []
    first = size = 0
    for document in documents:
        batch.append(document)
        size += sum(map(len, document))
        if size >= BATCH_CHARS:
            yield _fold(batch, first, letter_C)
            first += sum(map(len, batch))
            batch, size = [], 0
    if batch:
        yield _fold(batch, first, letter_C)


def _fold(documents: Sequence[Sequence[str]], first: int, letter_C: np.ndarray) -> Batch:
    letters_L, sizes_S = fold_all([sentence for document in documents for sentence in document], letter_C)
    document_S = np.repeat(np.arange(len(documents), dtype=np.int32), list(map(len, documents)))
    sentence_L = np.repeat(np.arange(len(sizes_S), dtype=np.int32), sizes_S)
    return Batch(first, letters_L, sentence_L, sizes_S, document_S)


def encode_ngrams(letters_L: np.ndarray, text_L: np.ndarray, ngram: int) -> tuple[np.ndarray, np.ndarray]:
    """Codes of all n-grams within a text, in order, uint64 and never 0, and where each begins.

    Args:
        text_L: number of each letter's text, ascending.
    """
    last = max(0, len(letters_L) - ngram + 1)
    code = np.zeros(last, np.uint64)
    for shift in range(ngram):
        code = (code << np.uint64(CODE_POINT_BITS)) | letters_L[shift : shift + last]
    at = np.flatnonzero(text_L[:last] == text_L[ngram - 1 :][:last])
    return code[at], at


def hash_table(codes: np.ndarray) -> np.ndarray:
    """Distinct codes in a table of 2^k slots, 0 where empty; a code whose slot is taken stands in the next free one."""
    code_S = np.zeros(2 << (SLOTS_PER_CODE * len(codes) >> 1).bit_length(), np.uint64)
    slot, left = first_slots(codes, len(code_S)), np.arange(len(codes))
    while len(left):
        is_free = code_S[slot[left]] == 0
        winners = left[is_free][np.unique(slot[left[is_free]], return_index=True)[1]]
        code_S[slot[winners]] = codes[winners]
        left = left[code_S[slot[left]] != codes[left]]
        slot[left] = (slot[left] + 1) & (len(code_S) - 1)
    return code_S


def look_up(codes: np.ndarray, code_S: np.ndarray) -> np.ndarray:
    """The slot of each code, int64; -1 where the table does not hold it."""
    slot = first_slots(codes, len(code_S))
    present = code_S[slot]
    left = np.flatnonzero((present != codes) & (present != 0))
    while len(left):
        slot[left] = (slot[left] + 1) & (len(code_S) - 1)
        present[left] = code_S[slot[left]]
        left = left[(present[left] != codes[left]) & (present[left] != 0)]
    slot[present == 0] = -1
    return slot


def first_slots(codes: np.ndarray, slots: int) -> np.ndarray:
    """Hashes of 64-bit codes, int64 from 0 to ``slots``, which is a power of two above 1."""
    return (codes.view(np.uint64) * GOLDEN_64 >> np.uint64(65 - slots.bit_length())).view(np.int64)
