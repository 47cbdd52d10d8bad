"""The invented world: one seed gives the same cities, organisations, people, works, venues and events.

Everything that documents and benchmark files say is read from here, so a fact is the same wherever it is told.
All names are invented; real countries, brands and persons do not occur.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from random import Random

from launch.sample import places_data
from launch.sample.entities import City, Country, Landmark, Organisation, Person, World
from launch.sample.events import make_events
from launch.sample.organisations import make_organisations, make_products
from launch.sample.people import make_people
from launch.sample.roles import Role, other_roles, roles_of
from launch.sample.seeding import random_for
from launch.sample.venues import make_venues
from launch.sample.works import credit, make_works

TODAY = date(2025, 6, 30)


def make_world(seed: int) -> World:
    """The world of one seed; about 270 people, 115 organisations, 75 works, 80 venues and 320 events."""
    cities = [city for province in places_data.PROVINCES.values() for city in province]
    organisations = make_organisations(cities, random_for(seed, "organisations"))
    roles = _roles(cities, organisations, random_for(seed, "roles"))
    schools = [(o.name, o.founded) for o in organisations if o.kind == "대학교"]
    people = make_people(roles, cities, schools, TODAY, random_for(seed, "people"))
    works = make_works(people, organisations, TODAY, random_for(seed, "works"))
    people = credit(people, works)
    products = make_products(organisations, TODAY, random_for(seed, "products"))
    staffed = [
        replace(_staffed(o, people), products=tuple(p.name for p in products if p.maker == o.name))
        for o in organisations
    ]
    world = World(
        seed=seed,
        today=TODAY,
        cities=tuple(_city(name, people) for name in cities),
        landmarks=tuple(_landmarks()),
        stations=places_data.STATIONS,
        countries=tuple(_countries(random_for(seed, "countries"))),
        people=tuple(people.values()),
        organisations=tuple(staffed),
        products=tuple(products),
        works=tuple(works),
        venues=tuple(make_venues(cities, places_data.STATIONS, random_for(seed, "venues"))),
    )
    return replace(world, events=tuple(make_events(world)))


def _roles(cities: list[str], organisations: Sequence[Organisation], rng: Random) -> list[Role]:
    named = {kind: [o.name for o in organisations if o.kind == kind] for kind in ("기획사", "정당")}
    employers = {"배우": named["기획사"], "가수": named["기획사"], "국회의원": named["정당"]}
    return [role for o in organisations for role in roles_of(o)] + other_roles(cities, employers, rng)


def _staffed(organisation: Organisation, people: Mapping[str, Person]) -> Organisation:
    """The organisation with founder, head and members by name."""
    name = organisation.name
    founder = people.get(f"founder:{name}")
    members = tuple(person.name for key, person in people.items() if key.startswith(f"member:{name}:"))
    head = people.get(f"head:{name}", founder)
    if organisation.kind == "밴드":
        return replace(organisation, head=members[0], members=members)
    assert head is not None
    return replace(organisation, founder=founder.name if founder else "", head=head.name, members=members)


def _city(name: str, people: Mapping[str, Person]) -> City:
    population, founded, known_for, land = places_data.CITY_TRAITS[name]
    province = next(province for province, cities in places_data.PROVINCES.items() if name in cities)
    districts = places_data.DISTRICTS.get(name, ())
    return City(name, province, population, founded, known_for, land, districts, people[f"mayor:{name}"].name)


def _landmarks() -> list[Landmark]:
    mountains = [Landmark(name, "산", city, height) for name, city, height in places_data.MOUNTAINS]
    rivers = [Landmark(name, "강", city, length, source) for name, source, city, length in places_data.RIVERS]
    waters = [Landmark(name, kind, city, area) for name, kind, city, area in places_data.WATERS]
    return mountains + rivers + waters


def _countries(rng: Random) -> list[Country]:
    given = rng.sample(places_data.FOREIGN_GIVEN, len(places_data.COUNTRIES))
    surnames = rng.sample(places_data.FOREIGN_SURNAMES, len(places_data.COUNTRIES))
    return [
        Country(name, capital, region, title, f"{first} {last}")
        for (name, capital, region, title), first, last in zip(places_data.COUNTRIES, given, surnames, strict=True)
    ]
