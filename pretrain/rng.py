"""Random numbers and shuffles as pure functions of a key and a place, so there is no state to save.

Keys are blake2b of the seed and a name; random numbers are the splitmix64 finalizer over key and place (Steele et al.
2014). Shuffles are a keyed Feistel network over the next power of two, repeated until the image is inside the range
(Black and Rogaway 2002), so nothing is stored for any size of corpus.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.uint64]

_ROUNDS = 6  # of the Feistel network; even
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLY_1 = np.uint64(0xBF58476D1CE4E5B9)
_MULTIPLY_2 = np.uint64(0x94D049BB133111EB)


def derive_key(seed: int, *names: str | int) -> np.uint64:
    """A 64-bit key that belongs to ``seed`` and ``names`` only."""
    text = ":".join(str(part) for part in (seed, *names))
    return np.uint64(int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little"))


def random_bits(key: np.uint64 | Bits, place: NDArray[np.integer]) -> Bits:
    """Uniform 64-bit numbers, one for each place; ``key`` broadcasts against ``place``."""
    word = (place.astype(np.uint64) + np.uint64(1)) * _GOLDEN ^ key  # arrays overflow without a warning
    word = (word ^ word >> np.uint64(30)) * _MULTIPLY_1
    word = (word ^ word >> np.uint64(27)) * _MULTIPLY_2
    return word ^ word >> np.uint64(31)


def as_uniform(words: Bits) -> NDArray[np.float64]:
    """Random bits as numbers from 0 (inclusive) to 1 (exclusive)."""
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def permute(index: NDArray[np.int64], size: int | NDArray[np.int64], key: np.uint64 | Bits) -> NDArray[np.int64]:
    """The images of ``index`` (each 0 <= i < size) under the permutation of ``range(size)`` that ``key`` names.

    ``size`` and ``key`` are the same for all, or arrays with one for each.

    >>> permute(np.arange(5), 5, derive_key(1, "order")).tolist()
    [1, 4, 2, 0, 3]
    >>> permute(np.array([3]), 5, derive_key(1, "order")).tolist()
    [0]
    """
    bits = np.maximum(2, np.frexp(np.asarray(size) - 1)[1]).astype(np.uint64)  # of size - 1
    keys = random_bits(key, np.arange(_ROUNDS).reshape(-1, *np.ones_like(np.shape(key))))
    out = index.astype(np.uint64)
    outside = np.arange(len(out))
    while len(outside):
        out[outside] = images = _feistel(out[outside], bits, keys)
        again = images >= size
        outside = outside[again]
        if isinstance(size, np.ndarray):
            size, bits, keys = size[again], bits[again], keys[:, again]
    return out.astype(np.int64)


def _feistel(words: Bits, bits: Bits, keys: Bits) -> Bits:
    """Halves of unequal width swap in every round, so after an even number of rounds each is back in its place."""
    one, left_bits = np.uint64(1), bits >> np.uint64(1)
    right_bits = bits - left_bits
    masks = (one << left_bits) - one, (one << right_bits) - one
    left, right = words >> right_bits, words & masks[1]
    for round_, key in enumerate(keys):
        left, right = right, left ^ (random_bits(key, right) & masks[round_ % 2])
    return left << right_bits | right
