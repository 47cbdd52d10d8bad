"""Near-duplicate documents by MinHash (datasketch): copies with small changes.

A signature has ``PERMUTATIONS`` numbers; the share of equal numbers estimates the Jaccard similarity of character
shingles. Documents that agree in a whole band are compared. Signatures are computed per unit; the comparison runs once,
in ranges of band keys, so memory is bounded. Costs 0.5 KB per document on disk; pairs near the threshold are found with
some probability only. Not in the paper; off by default.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from corpus.sentences.folding import fold_all, letter_table

PERMUTATIONS = 128  # numbers in a signature; the standard error of a similarity is 0.04
SHINGLE_CHARS = 5  # letters and digits per shingle
MIN_SHINGLES = 5  # shorter documents are only compared exactly
SHINGLES_AT_ONCE = 4096  # their hashes fit into the CPU cache
SOURCES_PER_BAND = 64  # each document is compared with at most this many earlier ones per band
NO_KEY = 0
PRIME = np.uint64(0x100000001B3)  # FNV's
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # spreads the bits of a product
HIGH_BITS = np.uint64(32)
BYTES_PER_KEY = 40  # key, document and their sorting
PAIR_BYTES = 16  # per number of a signature: both values and their comparison
MEMORY_BYTES = 1 << 28


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


def near_duplicates(
    signatures_of: Sequence[np.ndarray],
    keys_of: Sequence[np.ndarray],
    threshold: float,
    memory_bytes: int = MEMORY_BYTES,
) -> np.ndarray:
    """Whether an earlier kept document shares a band and has an estimated similarity of at least ``threshold``.

    Args:
        signatures_of, keys_of: results of ``signatures`` and ``band_keys`` per unit, best memory-mapped. Documents are
            numbered through all units, so the result does not depend on the units.
        memory_bytes: approximate limit, plus 10 bytes per document and 16 bytes per pair of duplicates.

    Returns:
        bool, one value per document.
    """
    starts = np.cumsum([0, *map(len, signatures_of)])
    is_duplicate = np.zeros(starts[-1], bool)
    whole = [_mix(rows[:, None])[:, 0] * ~_is_too_short(rows) for rows in signatures_of]
    for group, number in _buckets(whole, is_duplicate, memory_bytes):
        is_duplicate[number[1:][group[1:] == group[:-1]]] = True  # the first of equal signatures is kept
    pairs = [np.zeros((0, 2), np.int64)]
    at_once = max(1, memory_bytes // (PAIR_BYTES * PERMUTATIONS))
    for group, number in _buckets(keys_of, is_duplicate, memory_bytes):
        for earlier, later in _pairs(group, number, at_once):
            share = (_take(signatures_of, starts, earlier) == _take(signatures_of, starts, later)).mean(axis=1)
            is_near = (share >= threshold) & (earlier < later)
            pairs.append(np.stack([later[is_near], earlier[is_near]], axis=1))
    for later, earlier in np.unique(np.concatenate(pairs), axis=0).tolist():
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


def _buckets(
    keys_of: Sequence[np.ndarray], is_left_out: np.ndarray, memory_bytes: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Sorted keys that several documents share, and the numbers of these documents, ascending per key."""
    passes = max(1, math.ceil(sum(keys.size for keys in keys_of) * BYTES_PER_KEY / memory_bytes))
    width = (1 << 64) // passes + 1
    for low in range(0, 1 << 64, width):
        high = min(low + width, 1 << 64) - 1
        found, numbers, first = [], [], 0
        for unit in keys_of:
            keys = unit if unit.ndim == 2 else unit[:, None]
            is_here = (keys >= np.uint64(low)) & (keys <= np.uint64(high)) & (keys != NO_KEY)
            is_here &= ~is_left_out[first : first + len(keys), None]
            found.append(keys[is_here])
            numbers.append(first + np.nonzero(is_here)[0])
            first += len(keys)
        if any(map(len, found)):
            group, number = np.concatenate(found), np.concatenate(numbers)
            order = np.argsort(group, kind="stable")
            group, number = group[order], number[order]
            is_next = group[1:] == group[:-1]
            is_shared = np.append(is_next, False) | np.insert(is_next, 0, False)
            yield group[is_shared], number[is_shared]


def _pairs(group: np.ndarray, number: np.ndarray, at_once: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pairs of an earlier and a later document with equal keys, about ``at_once`` at a time."""
    place = np.arange(len(group))
    first = np.flatnonzero(np.append(True, group[1:] != group[:-1])) if len(group) else place
    start = np.repeat(first, np.diff(first, append=len(group)))
    sources = np.minimum(place - start, SOURCES_PER_BAND)
    ends = np.cumsum(sources)
    here = 0
    while here < len(group):
        stop = max(here + 1, int(np.searchsorted(ends, ends[here] + at_once)))
        times = sources[here:stop]
        nth = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
        yield number[np.repeat(start[here:stop], times) + nth], np.repeat(number[here:stop], times)
        here = stop


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
