"""Organisations of the world, before people join them: names, places, dates, products.

Companies take the kind of their products from the last part of their name (전자, 푸드, 게임즈 …).
"""

# ruff: noqa: E501 - a Hangul syllable counts as two columns
from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from random import Random

from launch.sample import names
from launch.sample.entities import Organisation, Product
from launch.sample.people import random_day
from launch.sample.roles import HEAD_TITLES
from launch.sample.works_data import PRODUCT_KINDS, PRODUCT_STEMS

SPORTS = ("축구", "야구", "농구", "배구")


AGENCY_HEADS = {
    "박물관": "관장", "본부": "본부장", "관리단": "단장", "재단": "이사장", "센터": "센터장", "연구소": "소장", "관리소": "소장",
}  # fmt: skip
CLUB_CITIES = (
    "가온시",
    "해솔시",
    "누리내시",
    "새벌시",
    "은누리시",
    "다솜시",
    "미르내시",
    "청담골시",
    "한여울시",
    "너른시",
)


def make_organisations(cities: Sequence[str], rng: Random) -> list[Organisation]:
    """All organisations; ``founder``, ``head``, ``members`` and ``products`` are still empty."""
    large = [city for city in cities if city.endswith("시")]
    made = [*_companies(large, rng), *_clubs(rng), *_universities(large, rng)]
    for name, short in names.BANDS:
        made.append(
            _found(rng, "밴드", name, "음악", (2010, 2020), rng.choice(large), short, 4, member_of="한국인디음악연합")
        )
    for name, short, city, field in names.AGENCIES:
        made.append(_found(rng, "공공기관", name, field, (1966, 2012), city, short))
    for name, short, field, faith in names.FOUNDATIONS:
        size = rng.randrange(12, 90) * 100
        made.append(_found(rng, "단체", name, field, (1974, 2009), rng.choice(large), short, size, affiliation=faith))
    for name, side in names.PARTIES:
        size = rng.randrange(20, 300) * 1_000
        made.append(_found(rng, "정당", name, "정치", (1994, 2018), "가온시", "", size, affiliation=side))
    for name in names.HOSPITALS:
        city = next(city for city in large if name.startswith(city[:-1]))
        made.append(_found(rng, "병원", name, "의료", (1971, 2008), city, "", rng.randrange(300, 2_400)))
    for kind, field, years, listed in (
        ("언론사", "언론", (1949, 2009), names.MEDIA),
        ("기획사", "연예", (1995, 2014), names.LABELS),
        ("출판사", "출판", (1975, 2012), names.PUBLISHERS),
        ("영화사", "영화 제작", (1996, 2013), names.STUDIOS),
    ):
        made += [_found(rng, kind, name, field, years, rng.choice(large)) for name in listed]
    return made


def _found(
    rng: Random,
    kind: str,
    name: str,
    field: str,
    years: tuple[int, int],
    city: str,
    alternate: str = "",
    size: int = 0,
    *,
    member_of: str = "",
    affiliation: str = "",
    dissolved: date | None = None,
) -> Organisation:
    title = next((t for end, t in AGENCY_HEADS.items() if kind == "공공기관" and name.endswith(end)), HEAD_TITLES[kind])
    return Organisation(
        name=name,
        kind=kind,
        field=field,
        alternate=alternate,
        founded=random_day(rng, date(years[0], 1, 1), date(years[1], 12, 31)),
        city=city,
        founder="",
        head="",
        head_title=title,
        size=size or rng.randrange(30, 400),
        member_of=member_of,
        affiliation=affiliation,
        dissolved=dissolved,
    )


def _companies(large: Sequence[str], rng: Random) -> list[Organisation]:
    stems = list(names.COMPANY_STEMS)
    rng.shuffle(stems)
    made = []
    for stem, ending in zip(stems, list(names.INDUSTRIES) * 3, strict=False):
        short = f"{stem[0]}{stem[2]}{ending}" if len(stem) >= 4 else stem
        closed = random_day(rng, date(2021, 1, 4), date(2023, 12, 28)) if rng.random() < 0.1 else None
        years = (1950, 1988) if ending in ("건설", "제약", "은행", "푸드", "에너지") else (1978, 2017)
        union = rng.choice(("", "가온상공인연합"))
        field, size = names.INDUSTRIES[ending][0], rng.randrange(8, 900) * 10
        made.append(
            _found(
                rng,
                "기업",
                stem + ending,
                field,
                years,
                rng.choice(large),
                short,
                size,
                member_of=union,
                dissolved=closed,
            )
        )
    return made


def _clubs(rng: Random) -> list[Organisation]:
    made = []
    for number, (stem, animal) in enumerate(zip(names.CLUB_STEMS, names.CLUB_ANIMALS, strict=True)):
        sport = SPORTS[number % len(SPORTS)]
        name = f"{stem}{animal}FC" if sport == "축구" else f"{stem} {animal}"
        size = rng.randrange(28, 64)
        made.append(_found(rng, "구단", name, sport, (1979, 2012), CLUB_CITIES[number], f"{animal} 군단", size))
    return made


def _universities(large: Sequence[str], rng: Random) -> list[Organisation]:
    made = []
    for stem in names.UNIVERSITY_STEMS:
        faith = rng.choice(("", "", "개신교", "천주교", "불교"))
        size, city = rng.randrange(40, 220) * 100, rng.choice(large)
        name, short = f"{stem}대학교", f"{stem}대"
        made.append(_found(rng, "대학교", name, "고등 교육", (1926, 1979), city, short, size, affiliation=faith))
    return made


def make_products(organisations: Sequence[Organisation], today: date, rng: Random) -> list[Product]:
    """Two or three products of every company; companies of one kind never share a brand."""
    used: dict[str, int] = {}
    products = []
    for organisation in organisations:
        if organisation.kind != "기업":
            continue
        key = next(k for ending, (_, k) in names.INDUSTRIES.items() if organisation.name.endswith(ending))
        brand = PRODUCT_STEMS[key][used.get(key, 0)]
        used[key] = used.get(key, 0) + 1
        noun, endings, low, high = PRODUCT_KINDS[key]
        for ending in endings:
            last = min(today, organisation.dissolved or today)
            first = max(date(2018, 1, 1), organisation.founded)
            step = 1_000_000 if low >= 100_000_000 else 10_000 if low >= 100_000 else 100
            price = rng.randrange(low, high) // step * step
            products.append(Product(brand + ending, noun, organisation.name, price, random_day(rng, first, last)))
    return products
