"""What can be told about the subjects of reading passages: facts of the world, and harmless details drawn for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import NamedTuple

from launch.sample.entities import Organisation, Person, Venue, World
from launch.sample.klue.facts import STAFF, VENUE_KINDS, kind_in_words
from launch.sample.numbers_ko import clock, count, full_day, won
from launch.sample.seeding import random_for

HOBBIES = ("등산", "바둑", "낚시", "뜨개질", "사진 찍기", "자전거 타기", "텃밭 가꾸기", "서예", "수영", "별 보기")
PRIZES = {
    "person": ("가온문화상", "누리내공로상", "새벌봉사상", "올해의 인물상", "시민이 뽑은 상"),
    "organisation": ("누리내공로상", "새벌봉사상", "다솜기술상", "시민이 뽑은 상", "좋은 일터상"),
    "work": ("가온문화상", "해솔예술상", "한여울빛상", "시민이 뽑은 상", "올해의 작품상"),
}
WEEKDAYS = ("월요일", "화요일", "수요일", "목요일", "금요일", "토요일", "일요일")


class Subject(NamedTuple):
    kind: str  # person, organisation, venue, city, work
    slots: Mapping[str, str]


def subjects_of(world: World, seed: int) -> list[Subject]:
    """Everything a passage can be about; slots without a value are left out."""
    told = [
        *_people(world, seed),
        *_organisations(world, seed),
        *_venues(world, seed),
        *_cities(world, seed),
        *_works(world, seed),
    ]
    return [Subject(kind, {slot: value for slot, value in slots.items() if value}) for kind, slots in told]


def _prize(kind: str, since: int, rng: Random) -> dict[str, str]:
    """A prize, not before the year ``since``; none if that has hardly begun."""
    year = rng.randint(max(2012, since), max(2024, since))
    return {"prize": rng.choice(PRIZES[kind]), "prizeyear": f"{year}년"} if year <= 2024 else {}


def _people(world: World, seed: int) -> Iterator[tuple[str, dict[str, str]]]:
    for person in world.people:
        if person.died:
            continue
        rng = random_for(seed, "mrc", person.name)
        employed = person.occupation in STAFF and person.title != "창업자"
        made = [work for work in world.works if work.creator == person.name]
        yield (
            "person",
            {
                "who": person.name,
                "birthplace": person.birthplace,
                "occupation": person.occupation,
                "date": full_day(person.born),
                "school": person.school,
                "org": person.employer if employed else "",
                "title": person.title if employed else "",
                "work": made[0].title if made else "",
                "workyear": f"{made[0].released.year}년" if made else "",
                "alias": person.alternate,
                "spouse": person.spouse,
                "spousejob": world.person(person.spouse).occupation if person.spouse else "",
                "father": person.father if person.father and world.person(person.father).died else "",
                "city": person.residence if person.residence != person.birthplace else "",
                "hobby": rng.choice(HOBBIES),
                **_prize("person", person.born.year + 24, rng),
            },
        )


def _organisations(world: World, seed: int) -> Iterator[tuple[str, dict[str, str]]]:
    for org in world.organisations:
        if org.dissolved or org.kind in ("밴드", "정당"):
            continue
        rng = random_for(seed, "mrc", org.name)
        founder = world.person(org.founder) if org.founder else None
        yield (
            "organisation",
            {
                "org": org.name,
                "city": org.city,
                "kind": kind_in_words(org),
                "year": f"{org.founded.year}년" if founder else "",
                **_founder(founder),
                "head": org.head if org.head != org.founder else "",
                "title": org.head_title,
                "size": count(org.size, "명"),
                "alias": org.alternate,
                **_product(world, org),
                "weekday": rng.choice(WEEKDAYS),
                **_prize("organisation", org.founded.year + 2, rng),
            },
        )


def _founder(founder: Person | None) -> dict[str, str]:
    if founder is None:
        return {}
    return {"founder": founder.name, "founderhome": founder.birthplace, "founderschool": founder.school}


def _product(world: World, org: Organisation) -> dict[str, str]:
    made = next((product for product in world.products if product.maker == org.name), None)
    return {"product": made.name, "price": won(made.price)} if made else {}


def _venues(world: World, seed: int) -> Iterator[tuple[str, dict[str, str]]]:
    for venue in world.venues:
        rng = random_for(seed, "mrc", venue.name)
        yield (
            "venue",
            {
                "venue": venue.name,
                "vkind": VENUE_KINDS.get(venue.kind, venue.kind),
                "city": venue.city,
                "area": {"중앙": "한복판"}.get(venue.area, venue.area),
                "station": venue.station,
                "minutes": f"{rng.randint(2, 18)}분",
                "dish": venue.speciality,
                "price": won(venue.price) if venue.price else "",
                **_business(world, venue, rng),
                "rating": f"{venue.rating:.1f}점",
            },
        )


def _business(world: World, venue: Venue, rng: Random) -> dict[str, str]:
    """Hours, owner and the like; a sight or a hotel has no owner whom guests know, a hotel does not close."""
    if venue.domain == "숙소":
        return {}
    hours = {"open": clock(rng.randint(8, 11), rng.choice((0, 30))), "close": clock(rng.randint(17, 22), 0)}
    hours["weekday"] = rng.choice(WEEKDAYS)
    if venue.domain == "관광":
        return hours
    owner = rng.choice([p for p in world.people if p.occupation == "요리사"])
    return {**hours, "owner": owner.name, "ownerhome": owner.birthplace, "since": f"{rng.randint(2009, 2023)}년"}


def _cities(world: World, seed: int) -> Iterator[tuple[str, dict[str, str]]]:
    for city in world.cities:
        rng = random_for(seed, "mrc", city.name)
        mountain = next((land for land in world.landmarks if land.kind == "산" and land.city == city.name), None)
        festival = next((w.title for w in world.works if w.kind == "축제" and w.creator == city.name), "")
        yield (
            "city",
            {
                "city": city.name,
                "province": city.province,
                "population": count(city.population, "명"),
                "fame": city.known_for,
                "year": f"{city.founded}년",
                "mayor": city.mayor,
                "mayorschool": world.person(city.mayor).school,
                "mountain": mountain.name if mountain else "",
                "height": f"{mountain.amount}m" if mountain else "",
                "festival": festival,
                "snow": rng.choice(("11월 중순", "11월 하순", "12월 초순", "12월 중순")),
            },
        )


def _works(world: World, seed: int) -> Iterator[tuple[str, dict[str, str]]]:
    homes = {person.name: person.birthplace for person in world.people}
    residences = {person.name: person.residence for person in world.people}
    for work in world.works:
        if work.kind == "축제":
            continue
        rng = random_for(seed, "mrc", work.title)
        actor = work.cast[0] if work.cast else ""
        yield (
            "work",
            {
                "work": work.title,
                "kind": work.kind,
                "creator": work.creator,
                "date": full_day(work.released),
                "genre": work.genre,
                "publisher": work.publisher,
                "creatorhome": homes.get(work.creator, ""),
                "actor": actor,
                "actorhome": residences.get(actor, ""),
                "span": f"{rng.randint(1, 5)}년",
                **_prize("work", work.released.year + 1, rng),
            },
        )
