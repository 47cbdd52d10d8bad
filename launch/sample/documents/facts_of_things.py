"""Facts of cities, landscapes, countries, works, products and venues as clauses with their values."""

from __future__ import annotations

from random import Random

from launch.sample.documents.other_relations import CITY, COUNTRY, FESTIVAL, LANDMARK, PRODUCT, VENUE, WORK
from launch.sample.documents.telling import Fact
from launch.sample.entities import City, Country, Landmark, Product, Venue, Work, World
from launch.sample.events_data import FESTIVAL_MONTHS
from launch.sample.numbers_ko import full_day, grouped, won

MAKING = {  # kind: (maker's word, "made" before the kind, how it is shown, while making)
    "영화": ("감독", "연출한", "개봉한", "여러 해 각본을 다듬은"),
    "드라마": ("연출자", "연출한", "방영된", "배우들과 오랜 연습을 거친"),
    "책": ("지은이", "쓴", "출간된", "오랜 취재와 퇴고를 거친"),
    "앨범": ("가수", "발표한", "발매된", "작은 녹음실에서 긴 작업을 거친"),
    "전시": ("작가", "연", "열린", "작업실에서 긴 시간을 보낸"),
}
PUBLISHER_WORDS = {"영화": "제작사", "드라마": "방송사", "책": "펴낸 곳", "앨범": "발매사", "전시": "전시장"}
KINDS_SHOWN = {"쇼핑": "쇼핑 명소", "공연": "공연장", "랜드마크": "명소"}
PRICE_WORDS = {"저렴": "저렴한", "적당": "부담스럽지 않은", "비싼": "비싼"}


def city_facts(world: World, c: City, rng: Random) -> list[Fact]:
    """Facts of a city, the definition first."""
    is_city = c.name.endswith("시")
    base: dict[str, object] = {
        "city": c.name,
        "province": c.province,
        "land": c.land,
        "known_for": c.known_for,
        "founded": c.founded,
        "rank": "시" if is_city else "군",
        "raised": "승격" if is_city else "독립",
        "population": grouped(c.population),
        "mayor": c.mayor,
        "mayor_title": "시장" if is_city else "군수",
        "districts": ", ".join(c.districts),
    }
    names = ["founded", "population", "known_for", "mayor"] + (["districts"] if c.districts else [])
    facts = [Fact(name, CITY[name], base) for name in names]
    for landmark in [landmark for landmark in world.landmarks if landmark.city == c.name]:
        slots = {**base, "landmark": landmark.name, "landmark_kind": landmark.kind}
        facts.append(Fact("landmark", CITY["landmark"], slots))
    for work in [work for work in world.works if work.kind == "축제" and work.creator == c.name]:
        slots = {**base, "festival": work.title, "festival_year": work.released.year}
        facts.append(Fact("festival", CITY["festival"], {**slots, "festival_month": FESTIVAL_MONTHS[work.title]}))
    for kind, group in (("기업", "company"), ("대학교", "school")):
        here = [o.name for o in world.organisations if o.kind == kind and o.city == c.name and not o.dissolved]
        facts += [Fact(group, CITY[group], {**base, group: name}) for name in here[:2]]
    rng.shuffle(facts)
    return [Fact("definition", CITY["definition"], base), *facts]


def landmark_facts(world: World, landmark: Landmark, rng: Random) -> list[Fact]:
    """Facts of a mountain, river or water, the definition first."""
    base: dict[str, object] = {
        "city": landmark.city,
        "province": world.city(landmark.city).province,
        "kind": landmark.kind,
        "amount": f"{landmark.amount:,}",
        "source": landmark.source,
        "hours": 1 + landmark.amount // 400,
    }
    group = landmark.kind if landmark.kind in ("산", "강") else "물"
    clauses = list(LANDMARK[group])
    rng.shuffle(clauses)
    clauses += rng.sample(LANDMARK["story"], 2)
    return [Fact("definition", LANDMARK["definition"], base)] + [Fact(group, (clause,), base) for clause in clauses]


def country_facts(country: Country, rng: Random) -> list[Fact]:
    """Facts of a country."""
    base: dict[str, object] = {
        "region": country.region,
        "capital": country.capital,
        "leader": country.leader,
        "leader_title": country.leader_title,
    }
    facts = [Fact(name, COUNTRY[name], base) for name in ("capital", "leader", "trade")]
    rng.shuffle(facts)
    return [Fact("definition", COUNTRY["definition"], base), *facts]


def work_facts(world: World, w: Work, rng: Random) -> list[Fact]:
    """Facts of a work, the definition first; festivals have their own."""
    base: dict[str, object] = {"year": w.released.year, "month": w.released.month, "date": full_day(w.released)}
    if w.kind == "축제":
        base |= {"month": FESTIVAL_MONTHS[w.title], "city": w.creator, "doing": w.genre}
        return [Fact(name, FESTIVAL[name], base) for name in ("definition", "doing", "since")]
    maker_word, made, shown, making = MAKING[w.kind]
    base |= {
        "creator": w.creator,
        "genre": "" if w.kind == "전시" else w.genre,
        "kind": w.kind,
        "made": made,
        "shown": shown,
        "making": making,
        "maker_word": maker_word,
        "publisher_word": PUBLISHER_WORDS[w.kind],
        "premise": w.premise,
        "publisher": w.publisher,
        "rating": w.rating,
        "years": rng.randint(2, 6),
    }
    names = ["creator", "publisher"] + (["premise"] if w.premise else []) + (["rating"] if w.rating else [])
    facts = [Fact(name, WORK[name], base) for name in names]
    if w.cast:
        cast = {"star": w.cast[0], "costar": w.cast[1], "third": w.cast[2]}
        facts.append(Fact("cast", WORK["cast"], {**base, **cast}))
    facts += [Fact("reception", (clause,), base) for clause in rng.sample(WORK["reception"], 2)]
    rng.shuffle(facts)
    return [Fact("definition", WORK["definition"], base), *facts]


def product_facts(world: World, p: Product, rng: Random) -> list[Fact]:
    """Facts of a product, the definition first."""
    maker = world.organisation(p.maker)
    base: dict[str, object] = {
        "maker": p.maker,
        "noun": p.kind,
        "city": maker.city,
        "field": maker.field,
        "price": won(p.price),
        "date": full_day(p.released),
        "year": p.released.year,
    }
    facts = [Fact(name, PRODUCT[name], base) for name in ("released", "price", "maker", "reception")]
    rng.shuffle(facts)
    return [Fact("definition", PRODUCT["definition"], base), *facts]


def venue_facts(world: World, v: Venue, rng: Random) -> list[Fact]:
    """Facts of a restaurant, a place to stay or a sight, the definition first. No telephone, no house number."""
    base: dict[str, object] = {
        "city": v.city,
        "area": v.area,
        "kind": KINDS_SHOWN.get(v.kind, v.kind),
        "station": v.station,
        "speciality": v.speciality,
        "price": won(v.price),
        "price_word": PRICE_WORDS.get(v.price_range, ""),
        "minutes": 2 + sum(map(ord, v.name)) % 13,
        "year": 1974 + sum(map(ord, v.name)) % 47,
    }
    names = ["station", "parking" if v.traits["주차 가능"] else "noparking", "founded"]
    if v.domain == "관광":
        names.append("sight_price" if v.price else "free")
    else:
        names.append("price")
    if v.speciality:
        names.append("speciality")
    facts = [Fact(name, VENUE[name], base) for name in names]
    rng.shuffle(facts)
    return [Fact("definition", VENUE["definition"], base), *facts]
