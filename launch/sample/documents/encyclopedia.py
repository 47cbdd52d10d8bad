"""Encyclopedic articles about everything that has a name, several about each, in other words and another order."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from launch.sample.documents import facts_of_things as things
from launch.sample.documents.articles import Draft
from launch.sample.documents.facts import organisation_facts, person_facts
from launch.sample.documents.fresh import freshest
from launch.sample.documents.telling import Fact, tell
from launch.sample.entities import World
from launch.sample.josa import attach
from launch.sample.seeding import random_for

PRONOUNS = {  # what a later sentence may call the subject
    "기업": ("이 회사", "회사", "이 기업"),
    "대학교": ("이 대학", "학교", "대학"),
    "구단": ("이 구단", "구단", "팀"),
    "밴드": ("이 밴드", "밴드", "이들"),
    "정당": ("이 정당", "당"),
    "단체": ("이 단체", "단체"),
    "언론사": ("이 언론사", "회사"),
    "공공기관": ("이 기관", "기관"),
    "병원": ("이 병원", "병원"),
    "도시": ("이 도시", "이곳", "이 지역"),
    "책": ("이 책", "책"),
    "앨범": ("이 앨범", "앨범"),
    "영화": ("이 영화", "영화"),
    "드라마": ("이 드라마", "작품"),
    "전시": ("이 전시", "전시"),
    "축제": ("이 축제", "축제"),
    "식당": ("이 식당", "이곳"),
    "숙소": ("이곳", "이 숙소"),
    "관광": ("이곳", "이 명소"),
    "자연": ("이곳",),
    "상품": ("이 제품", "이 상품"),
    "나라": ("이 나라",),
    "사람": ("그",),
}
Entry = tuple[str, str, Callable[[Random], list[Fact]]]  # headword, key of PRONOUNS, facts


def entries(world: World) -> list[Entry]:
    """What articles are about."""
    return [
        *((o.name, o.kind, partial(organisation_facts, world, o)) for o in world.organisations),
        *((p.name, "사람", partial(person_facts, world, p)) for p in world.people),
        *((c.name, "도시", partial(things.city_facts, world, c)) for c in world.cities),
        *((x.name, "자연", partial(things.landmark_facts, world, x)) for x in world.landmarks),
        *((x.name, "나라", partial(things.country_facts, x)) for x in world.countries),
        *((w.title, w.kind, partial(things.work_facts, world, w)) for w in world.works),
        *((p.name, "상품", partial(things.product_facts, world, p)) for p in world.products),
        *((v.name, v.domain, partial(things.venue_facts, world, v)) for v in world.venues),
    ]


def write_encyclopedia(world: World, seed: int, number: int) -> list[Draft]:
    """``number`` articles; every headword gets one before any gets another."""
    found = entries(world)
    seen: set[str] = set()
    return [freshest(partial(_article, found[i % len(found)], i, seed), seen) for i in range(number)]


def _article(entry: Entry, number: int, seed: int, attempt: int) -> Draft:
    name, key, facts_of = entry
    rng = random_for(seed, "encyclopedia", number, attempt)
    facts = facts_of(rng)
    limit = rng.randint(4, 9)
    shown = f"‘{name}’" if key in ("책", "앨범", "영화", "드라마", "전시") and rng.random() < 0.7 else name
    subjects = (attach(shown, "은"), *(attach(word, "은") for word in PRONOUNS.get(key, ("이곳",))), "", "")
    sentences = tell(facts[:limit], subjects, rng)
    return Draft(f"encyclopedia-{number:05}", "encyclopedia", name, tuple(sentences), key)
