"""Invented personal data of the sixteen types of paper Table 29, from blocks that belong to nobody where known.

Telephone blocks 010-0/010-1 and exchanges that start with 1 are never assigned, resident numbers carry the regions
97 to 99, plates end in 0001 to 0099, domains are example.*, roads are fictional. Check digits are right where one exists.
"""

# ruff: noqa: E501 - a Hangul syllable counts as two columns
from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

AREA_CODES = ("02", "031", "032", "033", "041", "042", "043", "051", "052", "053", "054", "061", "062", "063", "064")
HANDLES = (
    "haneul",
    "maru",
    "dalbit",
    "sori",
    "yeoul",
    "byeol",
    "namu",
    "garam",
    "onsae",
    "solbaram",
    "iseul",
    "bada",
    "mirnae",
)
HANGUL_HANDLES = ("달빛산책", "느린오후_", "해솔지기", "빵굽는날", "초록창문")
DOMAINS = ("example.com", "example.org", "example.net")
PAGES = (
    "notice",
    "event/2025",
    "reserve",
    "board/view?id=381",
    "map",
    "about",
    "shop/item-27",
    "news/1204",
    "faq#refund",
    "apply",
)
UNROUTED = (11, 22, 26, 33, 55)  # blocks of governments that never appear on the public network
REGIONS = (
    "서울특별시 마포구", "서울특별시 강동구", "서울 은평구", "경기도 수원시 팔달구", "경기도 고양시 일산동구", "경기 파주시", "부산광역시 수영구",
    "부산 동래구", "대구광역시 수성구", "인천광역시 연수구", "광주광역시 북구", "대전광역시 유성구", "강원특별자치도 춘천시", "충청북도 청주시 흥덕구",
    "전북특별자치도 전주시 완산구", "전라남도 순천시", "경상북도 안동시", "경상남도 진주시", "제주특별자치도 제주시", "울산광역시 남구",
)  # fmt: skip
FICTIONAL_ROADS = (
    "달무리로",
    "너울빛대로",
    "샛별마루길",
    "물레방앗골로",
    "은하수여울로",
    "도토리숲길",
    "새참골길",
    "느린구름로",
)
PLATE_LETTERS = "가나다라마거너더러머버서어저고노도로모보소오조구누두루무부수우주하허호"
RRN_WEIGHTS = (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)
BRN_WEIGHTS = (1, 3, 7, 1, 3, 7, 1, 3, 5)


def digits(rng: Random, length: int) -> str:
    return "".join(rng.choices("0123456789", k=length))


def telephone(rng: Random) -> str:
    kind = rng.randrange(8)
    last = digits(rng, 4)
    if kind < 4:
        middle = rng.choice("01") + digits(rng, 3)
        return rng.choice((f"010-{middle}-{last}", f"010-{middle}-{last}", f"010 {middle} {last}", f"010.{middle}.{last}",
                           f"010{middle}{last}", f"+82 10-{middle}-{last}"))  # fmt: skip
    if kind == 4:
        return f"{rng.choice(('011', '016', '017', '018', '019'))}-{rng.randrange(200, 1000)}-{last}"
    area, exchange = rng.choice(AREA_CODES), f"1{digits(rng, 2)}"
    return rng.choice(
        (
            f"{area}-{exchange}-{last}",
            f"{area}-{exchange}-{last}",
            f"({area}) {exchange}-{last}",
            f"{area}){exchange}-{last}",
        )
    )


def _registration(rng: Random, year_range: tuple[int, int], gender_codes: tuple[int, int], base: int) -> str:
    year = rng.randint(*year_range)
    code = rng.choice(gender_codes) + (2 if year >= 2000 else 0)
    body = (
        f"{year % 100:02}{rng.randint(1, 12):02}{rng.randint(1, 28):02}{code}{rng.choice((97, 98, 99))}{digits(rng, 3)}"
    )
    check = (base - sum(int(d) * w for d, w in zip(body, RRN_WEIGHTS, strict=True)) % 11) % 10
    return f"{body[:6]}{rng.choice(('-', '-', '-', ' - ', ''))}{body[6:]}{check}"


def resident_number(rng: Random) -> str:
    return _registration(rng, (1948, 2006), (1, 2), 11)


def foreigner_number(rng: Random) -> str:
    return _registration(rng, (1960, 2003), (5, 6), 13)


def email(rng: Random) -> str:
    return f"{rng.choice(HANDLES)}{rng.choice(('', '.', '_'))}{rng.randrange(10, 999)}@{rng.choice(DOMAINS)}"


def url(rng: Random) -> str:
    domain, page = rng.choice(DOMAINS), rng.choice(PAGES)
    return rng.choice(
        (
            f"https://www.{domain}/{page}",
            f"http://{domain}/{page}",
            f"www.{domain}/{page}",
            f"https://{rng.choice(HANDLES)}.{domain}",
        )
    )


def ip_address(rng: Random) -> str:
    return ".".join(
        map(str, (rng.choice(UNROUTED), rng.randrange(1, 255), rng.randrange(1, 255), rng.randrange(1, 255)))
    )


def mac_address(rng: Random) -> str:
    separator = rng.choice("-:")
    return separator.join(("00", "00", "5E", "00", "53", f"{rng.randrange(256):02X}"))


def mention(rng: Random) -> str:
    return "@" + rng.choice(
        (
            f"{rng.choice(HANDLES)}_{rng.randrange(1, 99)}",
            f"{rng.choice(HANDLES)}.log",
            rng.choice(HANDLES) + digits(rng, 3),
        )
    )


def address(rng: Random) -> str:
    road = f"{rng.choice(REGIONS)} {rng.choice(FICTIONAL_ROADS)} {rng.randrange(1, 260)}"
    detail = rng.choice(
        (
            "",
            "",
            f", {rng.randrange(2, 9)}층",
            f", {rng.randrange(101, 118)}동 {rng.randrange(2, 16)}0{rng.randrange(1, 5)}호",
        )
    )
    return road + detail


ACCOUNTS: Mapping[str, str] = {  # bank: digits by group; the banks are real, the numbers random
    "국민은행": "######-0#-######", "신한은행": "110-###-######", "우리은행": "1002-###-######", "하나은행": "###-######-###07",
    "농협": "301-####-####-##", "기업은행": "###-######-01-###", "카카오뱅크": "3333-0#-#######", "토스뱅크": "1000-####-####",
    "새마을금고": "9002-####-####-#",
}  # fmt: skip


def account(rng: Random) -> tuple[str, str]:
    """A bank and a number in its format."""
    bank = rng.choice(sorted(ACCOUNTS))
    return bank, "".join(digits(rng, 1) if c == "#" else c for c in ACCOUNTS[bank])


def passport(rng: Random) -> str:
    letter = rng.choice("MMMS")
    return rng.choice(
        (f"{letter}{digits(rng, 8)}", f"{letter}{digits(rng, 3)}{rng.choice('ABCDEFGH')}{digits(rng, 4)}")
    )


def driver_licence(rng: Random) -> str:
    if rng.random() < 0.15:
        return (
            f"{rng.choice(('서울', '부산', '경기', '강원'))} {rng.randrange(85, 99)}-{digits(rng, 6)}-{digits(rng, 2)}"
        )
    return f"{rng.choice((*range(11, 27), 28))}-{rng.randrange(0, 25):02}-{digits(rng, 6)}-{digits(rng, 2)}"


def business_number(rng: Random) -> str:
    body = f"{rng.randrange(101, 999)}{rng.choice(('81', '86', '87', '82', '25'))}{digits(rng, 4)}"
    total = sum(int(d) * w for d, w in zip(body, BRN_WEIGHTS, strict=True)) + int(body[8]) * 5 // 10
    return f"{body[:3]}-{body[3:5]}-{body[5:]}{(10 - total % 10) % 10}"


def health_insurance(rng: Random) -> str:
    return f"{rng.randrange(1, 9)}-{digits(rng, 10)}"


def card(rng: Random) -> str:
    body = rng.choice("9945") + digits(rng, 14)
    doubled = [int(d) * 2 if i % 2 == 0 else int(d) for i, d in enumerate(body)]
    check = -sum(d - 9 if d > 9 else d for d in doubled) % 10
    number = f"{body}{check}"
    return rng.choice(("-", "-", " ")).join(number[i : i + 4] for i in range(0, 16, 4))


def plate(rng: Random) -> str:
    last = f"00{rng.randrange(1, 100):02}"
    number = str(rng.choice((rng.randrange(11, 70), rng.randrange(101, 400))))
    if rng.random() < 0.15:
        return f"{rng.choice(('서울', '부산', '경기'))} {rng.randrange(31, 70)}{rng.choice('바사아자')} {last}"
    return f"{number}{rng.choice(PLATE_LETTERS)}{rng.choice(('', ' '))}{last}"


VALUES: Mapping[str, Callable[[Random], str]] = {
    "TEL": telephone, "RRN": resident_number, "FRN": foreigner_number, "EMAIL": email, "URL": url, "IP": ip_address,
    "MAC": mac_address, "MENTION": mention, "ADDRESS": address, "ACCOUNT": lambda rng: account(rng)[1], "PASSPORT": passport,
    "DRIVER": driver_licence, "BRN": business_number, "HEALTH": health_insurance, "CARD": card, "PLATE": plate,
}  # fmt: skip
