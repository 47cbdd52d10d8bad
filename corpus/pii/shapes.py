"""Keep the shape of a value while its content changes: digits go where digits were, separators stay.

Also the one shared Faker instance (building one takes about 50 ms), reseeded for every draw.
"""

from __future__ import annotations

import re
import string
from functools import lru_cache
from random import Random

from faker import Faker

DIGIT = re.compile("[0-9]")
_PIECE = re.compile("%[0-9A-Fa-f]{2}|[A-Za-z0-9]")


def digits_of(value: str) -> str:
    """The ASCII digits of a value, separators left out."""
    return "".join(DIGIT.findall(value))


def draw_digits(rng: Random, count: int) -> str:
    """``count`` random digits."""
    return "".join(rng.choices(string.digits, k=count))


def refill(value: str, digits: str) -> str:
    """``value`` with its digits replaced in order; ``digits`` has as many as ``value``."""
    rest = iter(digits)
    return DIGIT.sub(lambda _: next(rest), value)


def scramble(rng: Random, text: str) -> str:
    """Random letters for letters, digits for digits, percent escapes for percent escapes; the rest stays."""

    def draw(match: re.Match[str]) -> str:
        piece = match.group()
        if len(piece) == 3:
            return f"%{rng.randrange(0x20, 0x7F):02X}"
        if piece.isdigit():
            return rng.choice(string.digits)
        return rng.choice(string.ascii_lowercase if piece.islower() else string.ascii_uppercase)

    return _PIECE.sub(draw, text)


@lru_cache(maxsize=1)
def _faker() -> Faker:
    return Faker("ko_KR")


def draw_user_name(rng: Random) -> str:
    """A Latin user name such as ``minjun87``."""
    faker = _faker()
    faker.seed_instance(rng.getrandbits(64))
    return str(faker.user_name())


def draw_person_name(rng: Random) -> str:
    """A Korean name in Hangul."""
    faker = _faker()
    faker.seed_instance(rng.getrandbits(64))
    return str(faker.name())
