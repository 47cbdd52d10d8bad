"""The world as a list of facts, each a kind and the values of its slots, ready to be put into words.

``swaps`` holds values that would make the fact false: another city, another year, another person.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from launch.sample.entities import Organisation, Person, World
from launch.sample.klue.layout import cast
from launch.sample.numbers_ko import count, full_day, won

SUBJECT = {  # which slot a kind of fact is about
    "born": "who", "job": "who", "school": "who", "residence": "who", "spouse": "who", "work": "work", "founded": "org",
    "seat": "org", "head": "org", "product": "product", "venue": "venue", "land": "land", "city": "city",
}  # fmt: skip
STAFF = (
    "기업인", "교육자", "공무원", "사회 운동가", "언론인", "의사", "출판인", "영화 제작자", "연구원", "학자", "기자",
)  # fmt: skip
SEATED = ("기업", "대학교", "공공기관", "병원", "언론사", "출판사", "영화사", "기획사", "구단", "단체")
VENUE_KINDS = {"공연": "공연장", "쇼핑": "쇼핑 명소"}
MEASURES = {"산": ("높이", "m"), "강": ("길이", "km")}
TRAITS = {  # what a venue has or lacks, in words
    "주차 가능": ("차를 댈 곳이 있다", "차를 댈 곳이 없다"),
    "인터넷 가능": ("인터넷을 쓸 수 있다", "인터넷을 쓸 수 없다"),
    "주류 판매": ("술을 판다", "술을 팔지 않는다"),
    "야외석 유무": ("바깥 자리가 있다", "바깥 자리가 없다"),
    "흡연 가능": ("담배를 피울 수 있다", "담배를 피울 수 없다"),
    "조식 가능": ("아침 식사를 차려 준다", "아침 식사를 차려 주지 않는다"),
    "수영장 유무": ("수영장을 갖추었다", "수영장을 갖추지 않았다"),
    "헬스장 유무": ("헬스장을 갖추었다", "헬스장을 갖추지 않았다"),
    "스파 유무": ("스파를 갖추었다", "스파를 갖추지 않았다"),
    "경치 좋은": ("경치가 좋다", "경치가 좋지 않다"),
    "교육적": ("배울 거리가 많다", "배울 거리가 적다"),
    "역사적": ("역사가 깊다", "역사가 짧다"),
    "문화 예술": ("예술 작품을 볼 수 있다", "예술 작품을 볼 수 없다"),
}


@dataclass(frozen=True, slots=True)
class Fact:
    kind: str
    slots: Mapping[str, str]
    swaps: Mapping[str, Sequence[str]]

    @property
    def subject(self) -> str:
        return self.slots[SUBJECT[self.kind]]

    def falsified(self, slot: str, rng: Random) -> dict[str, str]:
        """The slots with another value in one of them."""
        return {**self.slots, slot: rng.choice([v for v in self.swaps[slot] if v not in self.slots.values()])}


def facts_of(world: World) -> list[Fact]:
    """Every fact, in the order of the world."""
    return [*_of_people(world), *_of_organisations(world), *_of_works(world), *_of_places(world)]


def facts_by_side(world: World) -> dict[str, list[Fact]]:
    """Facts for train and dev: those of a fifth of the subjects are kept for dev."""
    facts = facts_of(world)
    subjects = list(dict.fromkeys(fact.subject for fact in facts))
    sides = cast(subjects, world.seed, "facts")
    in_training = set(sides["train"])
    unseen = [fact for fact in facts if fact.subject not in in_training]
    return {"train": [f for f in facts if f.subject in in_training], "dev": [*unseen, *unseen, *facts]}


def _years(year: int) -> list[str]:
    return [f"{other}년" for other in range(year - 9, min(year + 10, 2025)) if abs(other - year) > 1]


def _of_people(world: World) -> Iterator[Fact]:
    cities = [city.name for city in world.cities]
    names = [person.name for person in world.people]
    schools = [o.name for o in world.organisations if o.kind == "대학교"]
    occupations = sorted({p.occupation for p in world.people})
    employers = sorted({p.employer for p in world.people if p.occupation in STAFF})
    for person in world.people:
        if person.died:
            continue
        who = {"who": person.name, "occupation": person.occupation}
        year = f"{person.born.year}년"
        born = {**who, "date": full_day(person.born), "year": year, "city": person.birthplace}
        yield Fact("born", born, {"city": cities, "year": _years(person.born.year)})
        yield Fact("residence", {**who, "city": person.residence}, {"city": cities, "occupation": occupations})
        if person.employer and person.occupation in STAFF and person.title != "창업자":
            yield Fact("job", {**who, "org": person.employer, "title": person.title}, {"org": employers})
        if person.school:
            yield Fact("school", {**who, "school": person.school}, {"school": schools})
        if person.spouse and person.name < person.spouse and _is_alive(world.person(person.spouse)):
            yield Fact("spouse", {**who, "spouse": person.spouse}, {"spouse": names})


def _is_alive(person: Person) -> bool:
    return person.died is None


def _of_organisations(world: World) -> Iterator[Fact]:
    cities = [city.name for city in world.cities]
    names = [person.name for person in world.people]
    for org in world.organisations:
        slots = {"org": org.name, "okind": kind_in_words(org)}
        if org.dissolved:
            continue
        if org.founder and org.kind not in ("밴드", "구단"):
            year = {"year": f"{org.founded.year}년", "founder": org.founder}
            yield Fact("founded", {**slots, **year}, {"year": _years(org.founded.year), "founder": names})
        if org.kind in SEATED:
            yield Fact("seat", {**slots, "city": org.city}, {"city": cities})
        if org.head and org.kind != "밴드":
            head = {"head": org.head, "title": org.head_title, "size": count(org.size, "명")}
            yield Fact("head", {**slots, **head}, {"head": names})


def kind_in_words(org: Organisation) -> str:
    """식품 기업, 축구 구단 …: the field where it says more than the kind."""
    return f"{org.field} {org.kind}" if org.kind in ("기업", "구단") else org.kind


def _of_works(world: World) -> Iterator[Fact]:
    makers = sorted({work.creator for work in world.works})
    for work in world.works:
        if work.kind == "축제":
            continue
        year = work.released.year
        slots = {"work": work.title, "kind": work.kind, "who": work.creator, "year": f"{year}년"}
        yield Fact("work", slots, {"year": _years(year), "who": makers})
    prices = sorted({won(product.price) for product in world.products})
    companies = sorted({product.maker for product in world.products})
    for product in world.products:
        price = won(product.price)
        slots = {"product": product.name, "pkind": product.kind, "org": product.maker, "price": price}
        yield Fact("product", slots, {"price": prices, "org": companies})


def _of_places(world: World) -> Iterator[Fact]:
    cities = [city.name for city in world.cities]
    for venue in world.venues:
        kinds = sorted({VENUE_KINDS.get(v.kind, v.kind) for v in world.venues if v.domain == venue.domain})
        kind = VENUE_KINDS.get(venue.kind, venue.kind)
        for trait, has in venue.traits.items():
            if trait in TRAITS:
                said, unsaid = TRAITS[trait] if has else TRAITS[trait][::-1]
                slots = {"venue": venue.name, "vkind": kind, "station": venue.station}
                slots |= {"trait": said, "antitrait": unsaid}
                yield Fact("venue", slots, {"station": world.stations, "vkind": kinds})
    for land in world.landmarks:
        measure, unit = MEASURES.get(land.kind, ("면적", "헥타르"))
        slots = {"land": land.name, "lkind": land.kind, "city": land.city, "measure": measure}
        others = [f"{round(land.amount * share)}{unit}" for share in (0.4, 0.6, 0.75, 1.3, 1.6, 2.1)]
        yield Fact("land", {**slots, "amount": f"{land.amount}{unit}"}, {"city": cities, "amount": others})
    provinces = sorted({city.province for city in world.cities})
    counts = [count(city.population, "명") for city in world.cities]
    for city in world.cities:
        slots = {"city": city.name, "province": city.province, "fame": city.known_for}
        slots["population"] = count(city.population, "명")
        yield Fact("city", slots, {"province": provinces, "population": counts})
