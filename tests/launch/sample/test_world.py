"""The invented world holds together: names resolve, dates are in order, people are of plausible age."""

from __future__ import annotations

from collections import Counter

import pytest

from launch.sample.documents.news import TEMPLATES, headline
from launch.sample.entities import World
from launch.sample.seeding import random_for
from launch.sample.world import make_world


@pytest.fixture(scope="module")
def world() -> World:
    return make_world(1)


def test_world_is_large_enough(world: World) -> None:
    assert len(world.people) >= 200
    assert len(world.organisations) >= 100
    assert len(world.cities) + len(world.landmarks) + len(world.stations) >= 60
    assert len(world.venues) >= 80
    assert len(world.works) >= 60
    assert len(world.events) >= 300


def test_same_seed_gives_the_same_world_and_another_seed_another(world: World) -> None:
    assert make_world(1) == world
    assert {p.name for p in make_world(2).people} != {p.name for p in world.people}


def test_names_are_unique(world: World) -> None:
    named = [world.people, world.organisations, world.cities, world.landmarks, world.products, world.venues]
    for things in named:
        assert max(Counter(thing.name for thing in things).values()) == 1
    assert max(Counter(work.title for work in world.works).values()) == 1


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_people_refer_to_what_exists(seed: int) -> None:
    world = make_world(seed)
    people = {p.name: p for p in world.people}
    employers = {o.name for o in world.organisations} | {f"{city.name}청" for city in world.cities} | {""}
    cities = {city.name for city in world.cities}
    schools = {o.name: o.founded for o in world.organisations if o.kind == "대학교"}
    for p in world.people:
        assert p.employer in employers
        assert {p.birthplace, p.residence} <= cities
        assert not p.school or schools[p.school].year <= p.born.year + 19
        if p.spouse:
            assert people[p.spouse].spouse == p.name
            assert people[p.spouse].gender != p.gender
            assert p.spouse not in p.siblings
        if p.father:
            father, mother = people[p.father], people[p.mother]
            assert father.name[0] == p.name[0]
            assert 25 <= p.born.year - father.born.year <= 46
            assert 25 <= p.born.year - mother.born.year <= 40
            assert p.name in father.children
        if p.died:
            assert p.born < p.died < world.today
            assert 35 <= p.died.year - p.born.year <= 95
        else:
            assert 18 <= world.today.year - p.born.year <= 92


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_organisations_refer_to_what_exists(seed: int) -> None:
    world = make_world(seed)
    people = {p.name: p for p in world.people}
    names = {o.name for o in world.organisations}
    products = {p.name: p for p in world.products}
    for o in world.organisations:
        assert o.head in people
        assert not o.founder or 20 <= o.founded.year - people[o.founder].born.year <= 50
        assert all(member in people for member in o.members)
        assert not o.member_of or o.member_of in names
        assert not o.dissolved or o.founded < o.dissolved < world.today
        for product in o.products:
            assert products[product].maker == o.name
            assert o.founded <= products[product].released <= (o.dissolved or world.today)


def test_works_are_made_by_adults_who_exist(world: World) -> None:
    people = {p.name: p for p in world.people}
    bands = {o.name: o.founded for o in world.organisations if o.kind == "밴드"}
    for work in world.works:
        if work.kind == "축제":
            assert work.creator in {city.name for city in world.cities}
            continue
        assert work.creator in people or bands[work.creator] < work.released
        for name in (work.creator, *work.cast):
            if name in people:
                assert work.released.year - people[name].born.year >= 22
                assert work.title in people[name].works


def test_venue_prices_fit_their_range(world: World) -> None:
    for venue in world.venues:
        if venue.domain == "숙소":
            assert (venue.price_range == "비싼") == (venue.price >= 180_000)
        assert venue.city in {city.name for city in world.cities}


def test_every_kind_of_event_has_templates_that_its_details_fill(world: World) -> None:
    assert {event.kind for event in world.events} == set(TEMPLATES)
    assert {event.topic for event in world.events} == {"IT과학", "경제", "사회", "생활문화", "세계", "스포츠", "정치"}
    for event in world.events:
        assert event.day < world.today
        assert headline(event, random_for(1, event.id))
