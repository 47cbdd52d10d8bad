"""Random numbers as pure functions: a key and a place give the draw, so nothing has to be remembered or skipped.

Keys are blake2b of the seed and a name; draws are the splitmix64 finalizer over key and place (Steele et al. 2014),
vectorised. The price is one multiplication chain per draw; the gain is that any rank, batch size or restart sees the
same numbers.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLY_1 = np.uint64(0xBF58476D1CE4E5B9)
_MULTIPLY_2 = np.uint64(0x94D049BB133111EB)


def derive_key(seed: int, *names: str | int) -> np.uint64:
    """A 64-bit key that belongs to ``seed`` and ``names`` only."""
    text = ":".join(str(part) for part in (seed, *names))
    return np.uint64(int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little"))


def draw_words(key: np.uint64 | Words, place: NDArray[np.integer]) -> Words:
    """Uniform 64-bit numbers, one for each place; ``key`` broadcasts against ``place``."""
    word = (place.astype(np.uint64) + np.uint64(1)) * _GOLDEN ^ key  # arrays wrap around in silence
    word = (word ^ word >> np.uint64(30)) * _MULTIPLY_1
    word = (word ^ word >> np.uint64(27)) * _MULTIPLY_2
    return word ^ word >> np.uint64(31)


def as_share(words: Words) -> NDArray[np.float64]:
    """The same draws as numbers from 0 (inclusive) to 1 (exclusive)."""
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
