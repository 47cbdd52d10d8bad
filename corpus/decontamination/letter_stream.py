"""Letter streams of documents, their n-grams as numbers, and a hash table of known n-grams.

Thousands of sentences are folded at once and joined, so n-grams and windows cross their boundaries. Equivalent letters
are one letter: full-width digits and Latin letters, half-width and single jamo (ㅋ, laughter). A lookup in the hash
table takes one or two steps; a sorted array needs twenty. The table needs 24 bytes per n-gram.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from corpus.sentences.folding import fold_all, letter_table

BATCH_CHARS = 40_000  # arrays of this size fit into the CPU cache
FULL_AND_HALF_WIDTH = range(0xFF01, 0xFFDD)
COMPATIBILITY_JAMO = range(0x3131, 0x3164)
CODE_POINT_BITS = 21
SLOTS_PER_CODE = 3
GOLDEN_64 = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio, spreads neighboring codes


@cache
def alike_letters() -> np.ndarray:
    """``letter_table()`` with one code point for equivalent letters; uint32, one value per code point."""
    letter_C = letter_table().copy()
    for jamo in COMPATIBILITY_JAMO:  # text normalized with NFKC has conjoining jamo instead
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
    """The L letters of the S sentences of some documents."""

    first: int  # number of the first sentence among those of all documents
    letters_L: np.ndarray  # code points of folded text, uint32
    sentence_L: np.ndarray  # number in the batch of each letter's sentence, int32
    sizes_S: np.ndarray  # letters of each sentence
    document_S: np.ndarray  # number of its document, int32

    def stretches(self, reach: int) -> Iterator[slice]:
        """Slices of about ``BATCH_CHARS`` letters that overlap by ``reach``, the longest window."""
        count = max(1, len(self.letters_L) // BATCH_CHARS)
        size = max(1, -(-len(self.letters_L) // count))
        for start in range(0, len(self.letters_L), size):
            yield slice(max(0, start - reach), start + size)


def read_batches(documents: Iterable[Sequence[str]], letter_C: np.ndarray) -> Iterator[Batch]:
    """Batches of whole documents with at least ``BATCH_CHARS`` letters."""
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
    """Codes of all n-grams within a text, in order (uint64, never 0), and their start positions.

    Args:
        text_L: number of the text of each letter, ascending.
    """
    last = max(0, len(letters_L) - ngram + 1)
    code = np.zeros(last, np.uint64)
    for shift in range(ngram):
        code = (code << np.uint64(CODE_POINT_BITS)) | letters_L[shift : shift + last]
    at = np.flatnonzero(text_L[:last] == text_L[ngram - 1 :][:last])
    return code[at], at


def hash_table(codes: np.ndarray) -> np.ndarray:
    """A hash table of distinct codes with 2^k slots, 0 for empty slots, and linear probing."""
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
    """The slot of each code, int64; -1 if it is not in the table."""
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
    """Hashes of 64-bit codes, int64 below ``slots``, a power of two above 1."""
    return (codes.view(np.uint64) * GOLDEN_64 >> np.uint64(65 - slots.bit_length())).view(np.int64)
