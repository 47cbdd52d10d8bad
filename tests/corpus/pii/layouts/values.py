"""Values of the 16 types as people write them, drawn without the generators of the detector.

| type | found without a label | found with a label only |
|---|---|---|
| TEL | mobile (hyphens, dots, blanks, tight, +82), area code with hyphens or brackets, 070 | 15xx-xxxx, tight |
| RRN, FRN | six digits, hyphen, seven digits, with a date of the calendar | 13 digits tight, parted by a blank |
| EMAIL | always | |
| IP | four numbers above 10 and public; global IPv6 | numbers below 10 (a version, a chapter) |
| MAC | six pairs with ``:`` or ``-``, three groups with ``.``, a letter among them | 12 digits tight |
| MENTION | ``@`` and Latin letters with a digit or ``_`` | plain words, Hangul |
| ADDRESS | region, city or district, road or town, number | |
| ACCOUNT, HEALTH | never | always |
| PASSPORT | M123A4567 | M12345678, ``M 12345678`` |
| DRIVER | 11-05-123456-12, 서울 05-123456-12 | parted by blanks, tight |
| BRN | 123-45-67891 with its check digit | tight, dots |
| CARD | four groups with hyphens or blanks that pass Luhn | tight |
| PLATE | tight, with a letter that counts nothing; with its region | with a blank or a hyphen |
| URL | with ``http`` or ``www.`` | a bare domain |

Values come from all blocks, those that belong to nobody and ordinary ones.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from random import Random

TELLING, BY_LABEL = True, False


@dataclass(frozen=True, slots=True)
class Writing:
    """One way to write a type; ``is_telling`` where a careful reader needs no label."""

    type: str
    name: str
    draw: Callable[[Random], str]
    is_telling: bool


@dataclass(frozen=True, slots=True)
class Value:
    """A drawn value; ``text`` is its whole span."""

    type: str
    text: str
    writing: str
    is_telling: bool


def draw_value(rng: Random, writing: Writing) -> Value:
    """A value in that writing."""
    return Value(writing.type, writing.draw(rng), writing.name, writing.is_telling)


def _digits(rng: Random, count: int) -> str:
    return f"{rng.randrange(10**count):0{count}}"


def _shaped(shape: str) -> Callable[[Random], str]:
    """Draws ``shape`` with a random digit for each ``#`` and a random capital letter for each ``A``."""

    def draw(rng: Random) -> str:
        digits = iter(_digits(rng, shape.count("#")))
        return "".join(next(digits) if c == "#" else rng.choice("ABCDEFGHJKLM") if c == "A" else c for c in shape)

    return draw


def _one_of(*shapes: str) -> Callable[[Random], str]:
    draws = [_shaped(shape) for shape in shapes]
    return lambda rng: rng.choice(draws)(rng)


def _registration(centuries: str, separator: str) -> Callable[[Random], str]:
    def draw(rng: Random) -> str:
        century = rng.choice(centuries)
        year = rng.randrange(2000, 2020) if century in "3478" else rng.randrange(1930, 2000)
        month = rng.randrange(1, 13)
        day = rng.randrange(1, monthrange(year, month)[1] + 1)
        return f"{year % 100:02}{month:02}{day:02}{separator}{century}{_digits(rng, 6)}"

    return draw


def _business(separator: str) -> Callable[[Random], str]:
    def draw(rng: Random) -> str:
        nine = f"{rng.randrange(101, 1000)}{rng.randrange(1, 100):02}{_digits(rng, 4)}"
        total = sum(int(d) * w for d, w in zip(nine, (1, 3, 7, 1, 3, 7, 1, 3, 5), strict=True)) + int(nine[8]) * 5 // 10
        return separator.join((nine[:3], nine[3:5], f"{nine[5:]}{-total % 10}"))

    return draw


def _passes_luhn(digits: str) -> bool:
    """The textbook form of ISO/IEC 7812-1: double every second digit from the right, add up all digits."""
    doubled = [int(d) * (1 + place % 2) for place, d in enumerate(reversed(digits))]
    return sum(d // 10 + d % 10 for d in doubled) % 10 == 0


def _card(separator: str) -> Callable[[Random], str]:
    def draw(rng: Random) -> str:
        is_amex = rng.randrange(5) == 0
        front = rng.choice(("34", "37")) + _digits(rng, 12) if is_amex else rng.choice("4569") + _digits(rng, 14)
        number = next(front + last for last in "0123456789" if _passes_luhn(front + last))
        cuts = (0, 4, 10, 15) if is_amex else (0, 4, 8, 12, 16)
        return separator.join(number[start:end] for start, end in pairwise(cuts))

    return draw


_NAMES = ("sumin", "jiwoo", "minho", "dabin", "yerin", "gildong", "hana", "taeho", "soyeon")
_HOSTS = ("example.com", "example.org", "naver.com", "gmail.com", "sumin-shop.co.kr", "mail.example.net", "daum.net")


def _email(rng: Random) -> str:
    name = rng.choice(_NAMES)
    return (
        f"{name}{rng.choice(('', '_', '.', '-'))}{rng.choice(('kim', 'lee77', _digits(rng, 3)))}@{rng.choice(_HOSTS)}"
    )


def _ipv4(rng: Random) -> str:
    first = rng.choice((*range(20, 100), *range(101, 127), *range(128, 169), *range(173, 192), 211, 220, 241, 250))
    return ".".join(map(str, (first, *(rng.randrange(11, 255) for _ in range(3)))))


def _ipv6(rng: Random) -> str:
    groups = [f"{rng.randrange(0x2400, 0x2F00):x}", *(f"{rng.randrange(0x1000, 0x10000):x}" for _ in range(7))]
    return ":".join(groups) if rng.randrange(2) else ":".join(groups[:3]) + "::" + groups[7]


def _mac(separator: str, size: int) -> Callable[[Random], str]:
    def draw(rng: Random) -> str:
        digits = f"{rng.randrange(16**11):011x}" + rng.choice("abcdef")
        text = separator.join(digits[start : start + size] for start in range(0, 12, size))
        return text.upper() if rng.randrange(2) else text

    return draw


def _mention(rng: Random) -> str:
    return f"@{rng.choice(_NAMES)}{rng.choice(('_', '__', '.kim_', ''))}{_digits(rng, 3)}"


def _hangul_mention(rng: Random) -> str:
    return f"@{rng.choice(('길동이네', '윤슬빵집', '달빛여행'))}{rng.choice(('', '_tv', '77'))}"


_PLACES = (
    (("서울특별시", "서울시", "서울"), ("강남구", "종로구", "관악구", "마포구")),
    (("부산광역시", "부산시", "부산"), ("해운대구", "중구", "사상구")),
    (("경기도", "경기"), ("성남시 분당구", "수원시 영통구", "파주시", "양평군")),
    (("강원특별자치도", "강원도", "강원"), ("춘천시", "평창군")),
    (("충청남도", "충남"), ("천안시 서북구", "아산시")),
    (("제주특별자치도", "제주도", "제주"), ("제주시", "서귀포시")),
)
_ROADS = ("윤슬로", "달빛로", "테헤란로", "나루길", "별꽃대로", "윤슬로12번길", "한빛로 3길", "솔숲1길")


def _address(tail: str) -> Callable[[Random], str]:
    def draw(rng: Random) -> str:
        regions, districts = rng.choice(_PLACES)
        front = f"{rng.choice(regions)} {rng.choice(districts)}"
        number = f"{rng.randrange(1, 1000)}{rng.choice(('', '', f'-{rng.randrange(1, 60)}'))}"
        if tail == "lot":
            return f"{front} {rng.choice(('윤슬동', '나루1동', '역삼동'))} {number}{rng.choice(('', '번지'))}"
        return f"{front} {rng.choice(_ROADS)} {number}{_shaped(tail)(rng)}"

    return draw


def _plate(front: str, gap: str, letters: str) -> Callable[[Random], str]:
    def draw(rng: Random) -> str:
        numbers = rng.choice((f"{rng.randrange(1, 70):02}", str(rng.randrange(100, 700))))
        if front:
            numbers = rng.choice(("서울", "경기", "부산")) + str(rng.randrange(10, 70))
        return f"{numbers}{rng.choice(letters)}{gap}{_digits(rng, 4)}"

    return draw


def _licence(separator: str) -> Callable[[Random], str]:
    def draw(rng: Random) -> str:
        region = rng.choice((*range(11, 27), 28))
        return separator.join((str(region), _digits(rng, 2), _digits(rng, 6), _digits(rng, 2)))

    return draw


def _url(front: str, path: str) -> Callable[[Random], str]:
    hosts = ("example.com", "blog.example.org", "sumin-shop.co.kr", "m.example.net", "gildong.kr")
    return lambda rng: f"{front}{rng.choice(hosts)}{rng.choice(('/a/b', '/post?id=ab', '/dabin/')) if path else ''}"


_ACCOUNTS = ("4#####-01-######", "110-###-######", "1002-7##-######", "123-######-###07", "301-9###-####-#1",
             "352-####-####-#3", "3333-##-#######", "1000-####-####", "100-2##-######", "1##-20-######",
             "9090-####-####-#", "112-####-####-##")  # fmt: skip
_PLAIN_LETTERS = "가나라마거너더러머버서어저고노소오누두무우"

WRITINGS: tuple[Writing, ...] = (
    Writing("TEL", "mobile", _one_of("010-####-####"), TELLING),
    Writing("TEL", "mobile tight", _one_of("010########"), TELLING),
    Writing("TEL", "mobile dots", _one_of("010.####.####"), TELLING),
    Writing("TEL", "mobile blanks", _one_of("010 #### ####"), TELLING),
    Writing("TEL", "abroad", _one_of("+82-10-####-####", "+82 10-####-####", "+8210########"), TELLING),
    Writing("TEL", "area", _one_of("02-3##-####", "02-####-####", "031-2##-####", "064-7##-####"), TELLING),
    Writing("TEL", "area bracket", _one_of("(02)3##-####", "02)3##-####", "(031) 2##-####"), TELLING),
    Writing("TEL", "070", _one_of("070-####-####", "0507-13##-####"), TELLING),
    Writing("TEL", "nationwide", _one_of("1588-####", "1544-####", "1600-####"), BY_LABEL),
    Writing("TEL", "area tight", _one_of("023######", "0312######"), BY_LABEL),
    Writing("RRN", "hyphen", _registration("1234", "-"), TELLING),
    Writing("RRN", "tight", _registration("1234", ""), BY_LABEL),
    Writing("RRN", "blank", _registration("1234", " "), BY_LABEL),
    Writing("FRN", "hyphen", _registration("5678", "-"), TELLING),
    Writing("FRN", "tight", _registration("5678", ""), BY_LABEL),
    Writing("EMAIL", "plain", _email, TELLING),
    Writing("IP", "v4", _ipv4, TELLING),
    Writing("IP", "v6", _ipv6, TELLING),
    Writing("MAC", "colons", _mac(":", 2), TELLING),
    Writing("MAC", "hyphens", _mac("-", 2), TELLING),
    Writing("MAC", "dots", _mac(".", 4), TELLING),
    Writing("MAC", "tight", _mac("", 12), BY_LABEL),
    Writing("MENTION", "Latin", _mention, TELLING),
    Writing("MENTION", "Hangul", _hangul_mention, BY_LABEL),
    Writing("ADDRESS", "road", _address(""), TELLING),
    Writing("ADDRESS", "flat", _address(", 10#동 1##호"), TELLING),
    Writing("ADDRESS", "floor", _address(" 1#층"), TELLING),
    Writing("ADDRESS", "lot", _address("lot"), TELLING),
    Writing("ACCOUNT", "hyphens", _one_of(*_ACCOUNTS), BY_LABEL),
    Writing("ACCOUNT", "tight", _one_of(*(shape.replace("-", "") for shape in _ACCOUNTS)), BY_LABEL),
    Writing("PASSPORT", "new", _one_of("M###A####", "S###A####", "R###A####"), TELLING),
    Writing("PASSPORT", "old", _one_of("M########", "S########", "M ########"), BY_LABEL),
    Writing("DRIVER", "hyphens", _licence("-"), TELLING),
    Writing("DRIVER", "region", _one_of("서울 ##-######-##", "경기##-######-##"), TELLING),
    Writing("DRIVER", "tight", _licence(""), BY_LABEL),
    Writing("DRIVER", "blanks", _licence(" "), BY_LABEL),
    Writing("BRN", "hyphens", _business("-"), TELLING),
    Writing("BRN", "tight", _business(""), BY_LABEL),
    Writing("BRN", "dots", _business("."), BY_LABEL),
    Writing("HEALTH", "hyphen", _one_of(*(f"{first}-##########" for first in range(1, 9))), BY_LABEL),
    Writing("HEALTH", "tight", _one_of(*(f"{first}##########" for first in range(1, 9))), BY_LABEL),
    Writing("CARD", "hyphens", _card("-"), TELLING),
    Writing("CARD", "blanks", _card(" "), TELLING),
    Writing("CARD", "tight", _card(""), BY_LABEL),
    Writing("PLATE", "tight", _plate("", "", _PLAIN_LETTERS), TELLING),
    Writing("PLATE", "region", _plate("region", "", _PLAIN_LETTERS), TELLING),
    Writing("PLATE", "blank", _plate("", " ", _PLAIN_LETTERS + "다도보조주수부구모자로호하허"), BY_LABEL),
    Writing("PLATE", "hyphen", _plate("", "-", _PLAIN_LETTERS), BY_LABEL),
    Writing("URL", "host", _url("https://", ""), TELLING),
    Writing("URL", "path", _url("http://", "path"), TELLING),
    Writing("URL", "www", _url("www.", ""), TELLING),
    Writing("URL", "bare", _url("", ""), BY_LABEL),
)  # fmt: skip
