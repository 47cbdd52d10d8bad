"""Near-duplicate documents by MinHash (datasketch): copies with small changes.

A signature has ``PERMUTATIONS`` numbers; the share of equal numbers estimates the Jaccard similarity of character
shingles. Documents that agree in a whole band are compared. Signatures are computed per unit; the comparison runs once,
band by band, with 40 bytes of memory per document. Costs 0.5 KB per document on disk; pairs near the threshold are
found with some probability only. Not in the paper; off by default.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from corpus.sentences.folding import fold_all, letter_table

PERMUTATIONS = 128  # numbers in a signature; the standard error of a similarity is 0.04
SHINGLE_CHARS = 5  # letters and digits per shingle
MIN_SHINGLES = 5  # shorter documents are only compared exactly
SHINGLES_AT_ONCE = 4096  # their hashes fit into the CPU cache
NEIGHBORS = 64  # each document is compared with at most this many earlier ones per band
NO_KEY = 0
PRIME = np.uint64(0x100000001B3)  # FNV's
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # spreads the bits of a product
HIGH_BITS = np.uint64(32)
PAIRS_AT_ONCE = 1 << 17  # 256 MB


def signatures(texts: Sequence[str]) -> np.ndarray:
    """MinHash signatures, uint32 ``[documents, PERMUTATIONS]``; all at the maximum for documents that are too short."""
    from datasketch import MinHash

    empty = MinHash(num_perm=PERMUTATIONS, hashfunc=int, scheme="affine32")
    rows = np.empty((len(texts), PERMUTATIONS), np.uint32)
    for row, text in zip(rows, texts, strict=True):
        sketch, hashes = empty.copy(), _shingles(text)
        for start in range(0, len(hashes) if len(hashes) >= MIN_SHINGLES else 0, SHINGLES_AT_ONCE):
            sketch.update_batch(hashes[start : start + SHINGLES_AT_ONCE].tolist())
        row[:] = sketch.hashvalues
    return rows


def band_keys(signatures_DP: np.ndarray, threshold: float) -> np.ndarray:
    """One key per band of each signature, uint64 ``[documents, bands]``; 0 for documents that are too short."""
    bands, rows = _bands(threshold)
    keys = _mix(signatures_DP[:, : bands * rows].reshape(-1, bands, rows))
    keys[_is_too_short(signatures_DP)] = NO_KEY
    return keys


def near_duplicates(signatures_of: Sequence[np.ndarray], keys_of: Sequence[np.ndarray], threshold: float) -> np.ndarray:
    """Whether an earlier kept document shares a band and has an estimated similarity of at least ``threshold``.

    Args:
        signatures_of, keys_of: results of ``signatures`` and ``band_keys`` per unit, best memory-mapped. Documents are
            numbered through all units, so the result does not depend on the units.

    Returns:
        bool, one value per document.
    """
    starts = np.cumsum([0, *map(len, signatures_of)])
    is_duplicate = np.zeros(starts[-1], bool)
    whole = [_mix(rows[:, None])[:, 0] * ~_is_too_short(rows) for rows in signatures_of]
    for _, later in _pairs(whole, is_duplicate, 1):
        is_duplicate[later] = True  # the first of equal signatures is kept
    found = [np.zeros((0, 2), np.int64)]
    for band in range(keys_of[0].shape[1] if keys_of else 0):
        for earlier, later in _pairs([keys[:, band] for keys in keys_of], is_duplicate, NEIGHBORS):
            share = (_take(signatures_of, starts, earlier) == _take(signatures_of, starts, later)).mean(axis=1)
            found.append(np.stack([later, earlier], axis=1)[share >= threshold])
    for later, earlier in np.unique(np.concatenate(found), axis=0).tolist():
        if not is_duplicate[earlier]:
            is_duplicate[later] = True
    return is_duplicate


def _take(signatures_of: Sequence[np.ndarray], starts: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """The signatures of documents by number."""
    rows = np.empty((len(numbers), signatures_of[0].shape[1]), np.uint32)
    unit = np.searchsorted(starts, numbers, side="right") - 1
    for present in np.unique(unit).tolist():
        here = unit == present
        rows[here] = signatures_of[present][numbers[here] - starts[present]]
    return rows


def _pairs(
    keys_of: Sequence[np.ndarray], is_left_out: np.ndarray, neighbors: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pairs of an earlier and a later document with equal keys, at most ``PAIRS_AT_ONCE`` at a time."""
    keys = np.concatenate([np.zeros(0, np.uint64), *keys_of])
    number = np.flatnonzero((keys != NO_KEY) & ~is_left_out)
    number = number[np.argsort(keys[number], kind="stable")]
    keys = keys[number]
    for distance in range(1, neighbors + 1):
        later = np.flatnonzero(keys[distance:] == keys[:-distance]) + distance
        for start in range(0, len(later), PAIRS_AT_ONCE):
            part = later[start : start + PAIRS_AT_ONCE]
            yield number[part - distance], number[part]


def _shingles(text: str) -> np.ndarray:
    """Distinct 32-bit hashes of the shingles of a text, as uint64."""
    letters = fold_all([text], letter_table())[0].astype(np.uint64)
    hashes = np.zeros(max(0, len(letters) - SHINGLE_CHARS + 1), np.uint64)
    for shift in range(SHINGLE_CHARS):
        hashes = hashes * PRIME + letters[shift : shift + len(hashes)]
    return np.unique(hashes * GOLDEN >> HIGH_BITS)


@lru_cache
def _bands(threshold: float) -> tuple[int, int]:
    """Number of bands and rows per band; false negatives weigh nine times as much, as candidates are compared."""
    from datasketch import MinHashLSH

    best = MinHashLSH(threshold=threshold, num_perm=PERMUTATIONS, weights=(0.1, 0.9))
    return best.b, best.r


def _mix(parts: np.ndarray) -> np.ndarray:
    """A 64-bit hash of the last axis, with a different seed for each index of the previous axis."""
    keys = np.broadcast_to(np.arange(1, parts.shape[-2] + 1, dtype=np.uint64), parts.shape[:-1])
    for place in range(parts.shape[-1]):
        keys = (keys ^ parts[..., place]) * GOLDEN
        keys ^= keys >> HIGH_BITS
    return keys


def _is_too_short(signatures_DP: np.ndarray) -> np.ndarray:
    return (signatures_DP == np.iinfo(np.uint32).max).all(axis=1)
