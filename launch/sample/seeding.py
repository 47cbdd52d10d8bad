"""Random generators that depend on the seed and on what they are for, never on order or process.

Two articles draw from two generators, so adding one article leaves the other unchanged.
"""

from __future__ import annotations

from hashlib import blake2b
from random import Random


def random_for(seed: int, *identity: str | int) -> Random:
    """A generator for one thing, e.g. ``random_for(seed, "news", 17)``."""
    key = "\x1f".join(map(str, (seed, *identity))).encode()
    return Random(int.from_bytes(blake2b(key, digest_size=8).digest(), "big"))
