"""Helpers of formats: replace the content of a value and keep its shape, draw names, tell dates and made-up digits."""

from __future__ import annotations

import re
import string
from calendar import monthrange
from functools import cache
from itertools import pairwise
from random import Random

from faker import Faker

from corpus.pii.fold import fold_disguises, fold_signs

DIGIT = re.compile("[0-9]")
_PIECE = re.compile("%[0-9A-Fa-f]{2}|[A-Za-z0-9가-힣]")
_NARROW = {0xFEE0 + code: code for code in range(0x21, 0x7F)}
_WIDEN = {code: wide for wide, code in _NARROW.items()}
# syllables that are not particles and do not end in one
_SYLLABLES = "별꽃샘숲봄빛솔달숨꿈"


def narrow(text: str) -> str:
    """A value in the plain form that patterns match: ASCII digits, hyphens and spaces."""
    return text if text.isascii() and text.isalnum() else fold_disguises(fold_signs(text).text).text


def widen_like(model: str, text: str) -> str:
    """``text`` with full-width characters and hyphens as in ``model``, if both have the same length."""
    plain_model = narrow(model)
    if model == plain_model or not len(model) == len(plain_model) == len(text):
        return text
    return "".join(
        m if t == p and not t.isalnum() else t.translate(_WIDEN) if ord(m) in _NARROW else t
        for m, p, t in zip(model, plain_model, text, strict=True)
    )


def digits_of(value: str) -> str:
    return "".join(DIGIT.findall(value))


def draw_digits(rng: Random, count: int) -> str:
    return "".join(rng.choices(string.digits, k=count))


def refill(value: str, digits: str) -> str:
    """``value`` with its digits replaced by ``digits``, which has as many."""
    rest = iter(digits)
    return DIGIT.sub(lambda _: next(rest), value)


def scramble(rng: Random, text: str) -> str:
    """Replace letters, syllables, digits and percent escapes with random ones of the same kind."""

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


@cache
def _faker() -> Faker:
    return Faker("ko_KR")  # takes about 50 ms


def faker(rng: Random) -> Faker:
    """Faker with a seed that is drawn from ``rng``."""
    _faker().seed_instance(rng.getrandbits(64))
    return _faker()


def is_birth_date(yymmdd: str, century_digit: str) -> bool:
    """Whether the first digits of a registration number are a valid date; century digits 3, 4, 7, 8 mean 20yy."""
    year = (2000 if century_digit in "3478" else 1900) + int(yymmdd[:2])
    month, day = int(yymmdd[2:4]), int(yymmdd[4:])
    return 1 <= month <= 12 and 1 <= day <= monthrange(year, month)[1]


def looks_typed(digits: str) -> bool:
    """Whether digits look made up: runs such as 112233445555 and 1010101010, or at most three different digits."""
    steps = {(int(right) - int(left)) % 10 for left, right in pairwise(digits)}
    rising = list(digits.rstrip("0")) == sorted(digits.rstrip("0"))
    return steps <= {0, 1, 9} or rising or len(set(digits)) <= 3
