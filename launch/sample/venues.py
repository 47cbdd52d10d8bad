"""Restaurants, places to stay and sights: where they are, what they cost, what they offer."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from launch.sample.entities import Venue
from launch.sample.places_data import AREAS, DISTRICTS
from launch.sample.venues_data import HOTELS, NIGHT_OF, PRICE_OF, RESTAURANTS, ROADS, SIGHTS

TRAITS = {
    "식당": ("주차 가능", "인터넷 가능", "야외석 유무", "주류 판매", "흡연 가능", "도보 가능"),
    "숙소": (
        "주차 가능",
        "인터넷 가능",
        "조식 가능",
        "수영장 유무",
        "헬스장 유무",
        "스파 유무",
        "흡연 가능",
        "도보 가능",
    ),
    "관광": ("주차 가능", "경치 좋은", "교육적", "문화 예술", "역사적", "도보 가능"),
}
RARE = {"수영장 유무": 0.25, "스파 유무": 0.25, "흡연 가능": 0.2, "야외석 유무": 0.35}
NEVER = {("베이커리", "주류 판매"), ("분식집", "주류 판매"), ("카페", "주류 판매"), ("베이커리", "흡연 가능")}
ALWAYS = {
    ("박물관", "교육적"),
    ("공원", "경치 좋은"),
    ("공연", "문화 예술"),
    ("미술관", "문화 예술"),
    ("호텔", "인터넷 가능"),
}
KNOWN_CITIES = {"한누리수목원": "볕뉘군", "별빛천문대": "은누리시", "해녀의바다전시관": "까치놀시"}
PLAIN_KINDS = ("분식집", "베이커리", "카페", "치킨집", "모텔", "호스텔")


def make_venues(cities: Sequence[str], stations: Sequence[str], rng: Random) -> list[Venue]:
    """All venues. A city in a venue's name is where it stands; prices fit the price range."""
    listed = [("식당", name, kind, dish) for name, kind, dish in RESTAURANTS]
    listed += [("숙소", name, kind, "") for name, kind in HOTELS]
    listed += [("관광", name, kind, "") for name, kind in SIGHTS]
    large = [city for city in cities if city.endswith("시")]
    return [
        _venue(number, entry, _city_of(entry[1], cities, rng.choice(large)), stations, rng)
        for number, entry in enumerate(listed)
    ]


def _city_of(name: str, cities: Sequence[str], otherwise: str) -> str:
    return KNOWN_CITIES.get(name) or next((city for city in cities if city[:-1] in name), otherwise)


def _venue(number: int, entry: tuple[str, str, str, str], city: str, stations: Sequence[str], rng: Random) -> Venue:
    domain, name, kind, speciality = entry
    price_range = "" if domain == "관광" else rng.choice(("저렴", "적당", "비싼"))
    if kind in PLAIN_KINDS and price_range == "비싼":
        price_range = "적당"
    if kind == "호텔" and price_range == "저렴":
        price_range = "적당"
    low, high = (0, 12_000) if domain == "관광" else (NIGHT_OF if domain == "숙소" else PRICE_OF)[price_range]
    price = rng.randrange(low, high) // 500 * 500
    if domain == "관광" and kind in ("공원", "랜드마크", "쇼핑"):
        price = 0
    traits = {
        trait: (kind, trait) not in NEVER and ((kind, trait) in ALWAYS or rng.random() < RARE.get(trait, 0.55))
        for trait in TRAITS[domain]
    }
    district = f"{rng.choice(DISTRICTS[city])} " if city in DISTRICTS else ""
    return Venue(
        name=name,
        domain=domain,
        kind=kind,
        city=city,
        area=rng.choice(AREAS),
        price_range=price_range,
        price=price,
        speciality=speciality,
        station=rng.choice(stations),
        address=f"{city} {district}{rng.choice(ROADS)} {rng.randrange(1, 240)}",
        phone=f"0{rng.choice((31, 41, 51, 61))}-1{rng.randrange(100):02}-{number:02}{rng.randrange(100):02}",
        traits=traits,
        rating=rng.randrange(32, 50) / 10,
    )
