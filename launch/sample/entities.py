"""What the invented world is made of. Things point at each other by name, and names are unique."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date


@dataclass(frozen=True, slots=True)
class City:
    name: str  # with its ending: 가온시, 물미군
    province: str
    population: int
    founded: int  # year
    known_for: str
    land: str  # 내륙, 해안, 산간, 섬
    districts: tuple[str, ...]
    mayor: str = ""


@dataclass(frozen=True, slots=True)
class Landmark:
    """A mountain, river, lake, island, bay or harbour: ``amount`` in m (산), km (강) or ha."""

    name: str
    kind: str  # 산, 강, 호수 …
    city: str
    amount: int
    source: str = ""  # rivers: the mountain they rise on


@dataclass(frozen=True, slots=True)
class Country:
    name: str
    capital: str
    region: str
    leader_title: str
    leader: str


@dataclass(frozen=True, slots=True)
class Person:
    name: str
    gender: str  # 남, 여
    born: date
    birthplace: str  # city
    residence: str  # city
    occupation: str  # 기업인, 가수 …; with the title below it makes "대표 김도현"
    title: str
    school: str  # university, or "" for some
    employer: str = ""  # organisation
    alternate: str = ""  # stage or pen name
    religion: str = ""
    died: date | None = None
    place_of_death: str = ""
    father: str = ""
    mother: str = ""
    spouse: str = ""
    children: tuple[str, ...] = ()
    siblings: tuple[str, ...] = ()
    works: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Organisation:
    name: str
    kind: str  # 기업, 대학교, 구단, 공공기관, 밴드, 단체, 정당, 언론사, 병원, 기획사, 출판사, 영화사
    field: str  # 전자제품, 축구 …
    alternate: str
    founded: date
    city: str
    founder: str
    head: str
    head_title: str
    size: int  # employees, students, members
    members: tuple[str, ...] = ()
    products: tuple[str, ...] = ()
    member_of: str = ""  # an association
    affiliation: str = ""  # 진보, 불교 …
    dissolved: date | None = None


@dataclass(frozen=True, slots=True)
class Product:
    name: str
    kind: str  # 스마트폰, 간편식 …
    maker: str
    price: int  # won
    released: date


@dataclass(frozen=True, slots=True)
class Work:
    title: str
    kind: str  # 영화, 책, 드라마, 앨범, 전시, 축제
    genre: str
    premise: str  # adnominal clause that goes before 이야기; "" for albums and exhibitions
    creator: str  # director, author, singer or band
    cast: tuple[str, ...]
    publisher: str  # organisation
    released: date
    rating: float = 0.0  # 0..10


@dataclass(frozen=True, slots=True)
class Venue:
    """A restaurant (식당), place to stay (숙소) or sight (관광)."""

    name: str
    domain: str
    kind: str
    city: str
    area: str  # 중앙, 동쪽 …
    price_range: str  # 저렴, 적당, 비싼; "" for sights
    price: int  # won a head, a night or a ticket; 0 is free
    speciality: str
    station: str
    address: str
    phone: str
    traits: Mapping[str, bool]  # 주차 가능, 인터넷 가능 …: names of WoS slots without the domain
    rating: float


@dataclass(frozen=True, slots=True)
class Event:
    """Something the news tells. ``details`` holds the numbers and names that its sentences use."""

    id: str
    topic: str  # a YNAT label
    kind: str
    day: date
    city: str
    organisation: str = ""
    person: str = ""
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class World:
    seed: int
    today: date
    cities: tuple[City, ...]
    landmarks: tuple[Landmark, ...]
    stations: tuple[str, ...]
    countries: tuple[Country, ...]
    people: tuple[Person, ...]
    organisations: tuple[Organisation, ...]
    products: tuple[Product, ...]
    works: tuple[Work, ...]
    venues: tuple[Venue, ...]
    events: tuple[Event, ...] = ()

    def person(self, name: str) -> Person:
        return next(person for person in self.people if person.name == name)

    def organisation(self, name: str) -> Organisation:
        return next(organisation for organisation in self.organisations if organisation.name == name)

    def city(self, name: str) -> City:
        return next(city for city in self.cities if city.name == name)
