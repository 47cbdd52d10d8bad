"""Keep the shape of a value while its content changes: digits go where digits were, separators stay.

Also the one shared Faker instance (building one takes about 50 ms), reseeded for every draw.
"""

from __future__ import annotations

import re
import string
from functools import lru_cache
from random import Random

from faker import Faker

from corpus.pii.fold import plain

DIGIT = re.compile("[0-9]")
_PIECE = re.compile("%[0-9A-Fa-f]{2}|[A-Za-z0-9가-힣]")
_NARROW = {0xFEE0 + code: code for code in range(0x21, 0x7F)}
_WIDEN = {code: wide for wide, code in _NARROW.items()}
# syllables that neither are particles nor end in one
_SYLLABLES = "별꽃샘숲봄빛솔달숨꿈"


def narrow(text: str) -> str:
    """A value in the plain form that the patterns read it in: ASCII digits, hyphens and blanks."""
    return text if text.isascii() and text.isalnum() else plain(text)


def widen_like(model: str, text: str) -> str:
    """``text`` with full-width characters and hyphens as ``model`` has them, if both are equally long."""
    plain_model = narrow(model)
    if model == plain_model or not len(model) == len(plain_model) == len(text):
        return text
    return "".join(
        m if t == p and not t.isalnum() else t.translate(_WIDEN) if ord(m) in _NARROW else t
        for m, p, t in zip(model, plain_model, text, strict=True)
    )


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
    """Random letters, syllables, digits and percent escapes in the place of such; the rest stays."""

    def draw(match: re.Match[str]) -> str:
        piece = match.group()
        if len(piece) == 3:
            return f"%{rng.randrange(0x20, 0x7F):02X}"
        if piece >= "가":
            return rng.choice(_SYLLABLES)
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
