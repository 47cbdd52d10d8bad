"""The document rules of FineWeb2 (arXiv 2506.20920) with its Korean thresholds, for many documents at once.

The rules are those of datatrove's GopherRepetitionFilter, FineWebQualityFilter and GopherQualityFilter. N-grams are
compared by 64-bit hashes of words. Cheap upper bounds of the n-gram shares clear nearly all documents; only the others
are counted exactly. Differences from FineWeb2:

- Words are eojeols, not morphemes of Kiwi. Stop words are particles and endings, so they are looked for at the end of
  eojeols.
- The minimum of 50 words does not apply, because documents of one sentence are valid. So the most frequent n-gram must
  occur at least three times.

Shapes: N documents, L lines, W words, C characters.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from corpus.quality.characters import FINAL, LETTER, LINE_END, SPACE, SYMBOL, Characters, sums

# configs/kor_Hang.yml of FineWeb2
MAX_TOP_NGRAMS = {2: 0.282, 3: 0.228, 4: 0.185}
MAX_REPEATED_NGRAMS = {5: 0.201, 6: 0.184, 7: 0.168, 8: 0.154, 9: 0.14, 10: 0.127}
MAX_REPEATED_LINES, MAX_LINE_ENDS, MIN_FINAL_LINES = 0.374, 0.196, 0.062
WORD_LENGTHS, MIN_LETTER_WORDS = (1, 6), 0.791
STOP_WORDS = (
    *("의", "다", "이", "는", "에", "을", "한", "년", "하", "은", "를", "했", "고", "가", "있", "인", "월", "로", "되"),
    *("에서", "으로"),
)
# the same in all languages, fineweb-2-pipeline.py and the defaults of datatrove
MAX_REPEATED_LINE_CHARS, MAX_HASHES, MAX_ELLIPSES = 0.1, 0.1, 0.1
MAX_BULLET_LINES, MAX_ELLIPSIS_LINES = 0.9, 0.3
MIN_STOP_WORDS = 2
MIN_TOP_COUNT = 3
BULLETS, ELLIPSES = "•-", ("...", "…")

RULES = (
    "repeated_lines", *(f"top_{n}_gram" for n in MAX_TOP_NGRAMS), *(f"repeated_{n}_grams" for n in MAX_REPEATED_NGRAMS),
    "few_final_lines", "repeated_line_chars", "many_line_ends", "short_words", "long_words", "many_hashes",
    "many_ellipses", "many_bullet_lines", "many_ellipsis_lines", "few_letter_words", "few_stop_words",
)  # fmt: skip
"""Names of the rules in the order in which they are applied."""

MIX, BASE = np.uint64(0x9E3779B97F4A7C15), 0xD6E8FEB86659FD93  # odd, so multiplication can be undone
BUCKET_BITS = 18


def failed_rules(characters: Characters, texts: Sequence[str], morphemes: float = 1) -> dict[str, np.ndarray]:
    """For each rule, whether each text fails it; texts are without blank lines and outer white space.

    Args:
        morphemes: number of FineWeb2's words per eojeol, for the limits of line ends, hashes and ellipses per word.
    """
    lines, words = (_find_pieces(characters, characters.is_any(separators)) for separators in (LINE_END, SPACE))
    is_failed = (
        _failed_line_rules(texts, characters, lines, morphemes * words.counts())
        | _failed_word_rules(characters, words)
        | _failed_ngram_rules(words, characters.end_T - characters.first_T)
    )
    return {name: is_failed[name] for name in RULES}


_Failed = dict[str, np.ndarray]  # bool per document


class _Pieces(NamedTuple):
    """Lines or words: their first and end characters, documents and hashes; ``first_N`` is the first of a document."""

    first_X: np.ndarray
    end_X: np.ndarray
    document_X: np.ndarray
    hash_X: np.ndarray
    first_N: np.ndarray

    def counts(self) -> np.ndarray:
        return np.diff(self.first_N)

    def keys(self) -> np.ndarray:
        """Hashes that also differ between documents."""
        return self.hash_X ^ (self.document_X.astype(np.uint64) + np.uint64(1)) * MIX

    def per_document(self, values_X: np.ndarray) -> np.ndarray:
        return np.diff(sums(values_X)[self.first_N])


def _find_pieces(characters: Characters, is_between_C: np.ndarray) -> _Pieces:
    """The runs of other characters, hashed."""
    edges = np.flatnonzero(np.diff(is_between_C.astype(np.int8), prepend=1))
    first_X, end_X = edges[::2], edges[1::2]  # the last character is a line end
    first_N = np.searchsorted(first_X, np.append(characters.first_T, len(is_between_C)))
    document_X = np.repeat(np.arange(len(first_N) - 1), np.diff(first_N))
    power_C, inverse_C = _powers(1 << (len(is_between_C) + 1).bit_length())
    mixed_C = (characters.code_C + np.uint64(1)) * MIX
    mixed_C ^= mixed_C >> np.uint64(29)
    summed = sums(mixed_C * power_C[: len(mixed_C)])
    hash_X = (summed[end_X] - summed[first_X]) * inverse_C[first_X]
    return _Pieces(first_X, end_X, document_X, hash_X ^ hash_X >> np.uint64(32), first_N)


@cache
def _powers(size: int) -> tuple[np.ndarray, np.ndarray]:
    """``BASE ** n`` and ``BASE ** -n`` modulo 2 ** 64."""
    both = np.full((2, size), [[BASE], [pow(BASE, -1, 1 << 64)]], np.uint64)
    both[:, 0] = 1
    np.multiply.accumulate(both, axis=1, out=both)
    return both[0], both[1]


def _share(part_N: np.ndarray, whole_N: np.ndarray) -> np.ndarray:
    return part_N / np.maximum(whole_N, 1)


def _failed_line_rules(texts: Sequence[str], characters: Characters, lines: _Pieces, words_N: np.ndarray) -> _Failed:
    """Rules for lines, and for the characters of the text."""
    chars_N = np.fromiter(map(len, texts), np.int64, len(texts))
    length_L, lines_N = lines.end_X - lines.first_X, lines.counts()
    line_ends_N = characters.number_of(characters.is_any(LINE_END))
    is_repeat_L = ~np.isin(np.arange(len(length_L)), np.unique(lines.keys(), return_index=True)[1])
    last_L = characters.code_C[lines.end_X - 1]
    is_dotted_L = np.logical_and.reduce([characters.code_C[lines.end_X - n] == ord(".") for n in (1, 2, 3)])
    is_bullet_L = np.isin(characters.code_C[lines.first_X], list(map(ord, BULLETS)))
    is_final_L = (characters.class_C[lines.end_X - 1] & FINAL) != 0
    hashes_N, ellipses_N = (
        np.array([sum(map(text.count, marks)) for text in texts], np.int64) for marks in ("#", ELLIPSES)
    )

    def share_of_lines(is_counted_L: np.ndarray) -> np.ndarray:
        return _share(lines.per_document(is_counted_L), lines_N)

    repeated_chars_N = lines.per_document(is_repeat_L * length_L)
    return {
        "repeated_lines": share_of_lines(is_repeat_L) > MAX_REPEATED_LINES,
        "repeated_line_chars": _share(repeated_chars_N, chars_N - line_ends_N) > MAX_REPEATED_LINE_CHARS,
        "few_final_lines": (share_of_lines(is_final_L) < MIN_FINAL_LINES) & (lines_N > 0),
        "many_line_ends": _share(line_ends_N, words_N) > MAX_LINE_ENDS,
        "many_bullet_lines": share_of_lines(is_bullet_L) > MAX_BULLET_LINES,
        "many_ellipsis_lines": share_of_lines(is_dotted_L | (last_L == ord("…"))) > MAX_ELLIPSIS_LINES,
        "many_hashes": _share(hashes_N, words_N) > MAX_HASHES,
        "many_ellipses": _share(ellipses_N, words_N) > MAX_ELLIPSES,
    }


def _failed_word_rules(characters: Characters, words: _Pieces) -> _Failed:
    symbols, letters = sums(characters.is_any(SYMBOL)), sums(characters.is_any(LETTER))
    length_W, words_N = words.end_X - words.first_X, words.counts()
    has_content_W = symbols[words.end_X] - symbols[words.first_X] < length_W
    has_letter_W = letters[words.end_X] > letters[words.first_X]
    content_N = words.per_document(has_content_W)
    mean_N = _share(words.per_document(has_content_W * length_W), content_N)
    stop_N = np.zeros(len(words_N), np.int64)
    last_W = characters.code_C[words.end_X - 1].astype(np.int64)
    pair_W = np.where(length_W > 1, characters.code_C[words.end_X - 2], 0) * np.int64(1 << 21) + last_W
    for word in STOP_WORDS:
        is_stop_W = (last_W if len(word) == 1 else pair_W) == _packed(word)
        stop_N[np.unique(words.document_X[is_stop_W])] += 1
    return {
        "short_words": (mean_N < WORD_LENGTHS[0]) & (content_N > 0),
        "long_words": mean_N > WORD_LENGTHS[1],
        "few_letter_words": (_share(words.per_document(has_letter_W), words_N) < MIN_LETTER_WORDS) & (words_N > 0),
        "few_stop_words": (stop_N < MIN_STOP_WORDS) & (words_N > 0),
    }


def _packed(word: str) -> int:
    """The code points of one or two characters as one number."""
    return sum(ord(character) << 21 * place for place, character in enumerate(reversed(word)))


# --- n-grams


def _failed_ngram_rules(words: _Pieces, chars_N: np.ndarray) -> _Failed:
    """Count n-grams exactly in the documents that can fail by an upper bound."""
    failed = {name: np.zeros(len(chars_N), bool) for name in RULES if "_gram" in name}
    length_W = words.end_X - words.first_X
    for name, limits, may_fail, chars_of in (
        ("top_{}_gram", MAX_TOP_NGRAMS, _may_have_top_ngram, _chars_of_top_ngram),
        ("repeated_{}_grams", MAX_REPEATED_NGRAMS, _may_repeat_ngrams, _chars_of_repeated_ngrams),
    ):
        for document in np.flatnonzero(may_fail(words, length_W, chars_N)).tolist():
            part = slice(words.first_N[document], words.first_N[document + 1])
            for n, limit in limits.items():
                count = chars_of(words.hash_X[part], length_W[part], n)
                failed[name.format(n)][document] = count > limit * chars_N[document]
    return failed


def _ngrams(hash_W: np.ndarray, n: int) -> np.ndarray:
    """A hash of each run of ``n`` words."""
    count = max(0, len(hash_W) - n + 1)
    key = np.zeros(count, np.uint64)
    for place in range(n):
        key = (key ^ hash_W[place : place + count]) * MIX
        key ^= key >> np.uint64(31)
    return key


def _may_have_top_ngram(words: _Pieces, length_W: np.ndarray, chars_N: np.ndarray) -> np.ndarray:
    """Whether any n-gram could be frequent enough: it occurs no more often than its first two words together.

    Pairs are counted in buckets, so some are counted together.
    """
    pair_X = _ngrams(words.keys(), 2)
    bucket_X = (pair_X >> np.uint64(64 - BUCKET_BITS)).astype(np.int64)
    count_X = np.bincount(bucket_X, minlength=1 << BUCKET_BITS)[bucket_X]
    chars = sums(length_W + 1)
    may_fail_N = np.zeros(len(chars_N), bool)
    for n, limit in MAX_TOP_NGRAMS.items():
        end_X = np.minimum(np.arange(len(pair_X)) + n, len(length_W))
        size_X = chars[end_X] - chars[: len(pair_X)]
        document_X = words.document_X[: len(pair_X)]
        is_much_X = (count_X >= MIN_TOP_COUNT) & (size_X * count_X > limit * chars_N[document_X])
        may_fail_N[document_X[is_much_X]] = True
    return may_fail_N


def _may_repeat_ngrams(words: _Pieces, length_W: np.ndarray, chars_N: np.ndarray) -> np.ndarray:
    """Whether the words of all shortest n-grams that repeat an earlier one have enough characters; longer ones have no
    others."""
    n = min(MAX_REPEATED_NGRAMS)
    key_X = _ngrams(words.keys(), n)
    bucket_X = (key_X >> np.uint64(64 - BUCKET_BITS)).astype(np.int64)
    candidates = np.flatnonzero(np.bincount(bucket_X, minlength=1 << BUCKET_BITS)[bucket_X] > 1)
    is_repeat_X = np.ones(len(candidates), bool)
    is_repeat_X[np.unique(key_X[candidates], return_index=True)[1]] = False  # the first one of each
    places = candidates[is_repeat_X]
    change_W = np.zeros(len(length_W) + 1, np.int64)
    change_W[places] += 1
    change_W[places + n] -= 1
    is_covered_W = np.cumsum(change_W[:-1]) > 0
    return words.per_document(is_covered_W * length_W) > min(MAX_REPEATED_NGRAMS.values()) * chars_N


def _chars_of_top_ngram(hash_W: np.ndarray, length_W: np.ndarray, n: int) -> int:
    """Characters of all occurrences of the most frequent n-gram, with spaces; 0 if it is rare."""
    _, first_X, count_X = np.unique(_ngrams(hash_W, n), return_index=True, return_counts=True)
    most = count_X.max(initial=0)
    if most < MIN_TOP_COUNT:
        return 0
    first = int(first_X[count_X == most].min())
    return int(most * (length_W[first : first + n].sum() + n - 1))


def _chars_of_repeated_ngrams(hash_W: np.ndarray, length_W: np.ndarray, n: int) -> int:
    """Characters of n-grams that repeat an earlier one, without spaces; they do not overlap."""
    keys, chars = _ngrams(hash_W, n).tolist(), sums(length_W).tolist()
    seen: set[int] = set()
    place = repeated = 0
    while place < len(keys):
        if keys[place] in seen:
            repeated += chars[place + n] - chars[place]
            place += n
        else:
            seen.add(keys[place])
            place += 1
    return int(repeated)
