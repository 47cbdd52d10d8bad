"""Films, series, books, albums, exhibitions and festivals, with their makers among the people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from random import Random

from launch.sample.entities import Organisation, Person, Work
from launch.sample.names import LABELS, PUBLISHERS, STUDIOS
from launch.sample.people import random_day
from launch.sample.works_data import ALBUMS, BOOKS, EXHIBITIONS, FESTIVALS, FILMS, SERIES


def make_works(
    people: Mapping[str, Person], organisations: Sequence[Organisation], today: date, rng: Random
) -> list[Work]:
    """All works; makers and casts were at least 22 years old when a work came out."""
    by_occupation: dict[str, list[str]] = {}
    for person in people.values():
        if person.died is None:
            by_occupation.setdefault(person.occupation, []).append(person.name)
    age = {person.name: person.born.year for person in people.values()}

    def adults(occupations: tuple[str, ...], day: date) -> list[str]:
        return [n for o in occupations for n in by_occupation.get(o, []) if day.year - age[n] >= 22]

    def released() -> date:
        return random_day(rng, date(2012, 1, 1), date(2025, 4, 30))

    works = []
    for kind, listed, publishers in (("영화", FILMS, STUDIOS), ("드라마", SERIES, ("다솜방송",))):
        for title, genre, premise in listed:
            day = released()
            director = rng.choice(adults(("영화감독",), day))
            cast = tuple(rng.sample(adults(("배우",), day), 3))
            works.append(
                Work(
                    title, kind, genre, premise, director, cast, rng.choice(publishers), day, rng.randrange(52, 96) / 10
                )
            )
    for title, genre, premise in BOOKS:
        day = released()
        makers = (
            ("시인",)
            if genre == "시집"
            else ("소설가",)
            if "소설" in genre or genre in ("동화", "산문집")
            else ("학자", "소설가")
        )
        works.append(
            Work(
                title,
                "책",
                genre,
                premise,
                rng.choice(adults(makers, day)),
                (),
                rng.choice(PUBLISHERS),
                day,
                rng.randrange(60, 97) / 10,
            )
        )
    bands = {organisation.name: organisation.founded for organisation in organisations if organisation.kind == "밴드"}
    for title in ALBUMS:
        day = released()
        makers_now = adults(("가수",), day) + [name for name, founded in bands.items() if founded < day]
        works.append(
            Work(
                title,
                "앨범",
                rng.choice(("발라드", "포크", "인디 록", "재즈 팝")),
                "",
                rng.choice(makers_now),
                (),
                rng.choice(LABELS),
                day,
                rng.randrange(60, 97) / 10,
            )
        )
    for title in EXHIBITIONS:
        day = random_day(rng, date(2022, 1, 1), date(2025, 5, 31))
        works.append(Work(title, "전시", "미술 전시", "", rng.choice(adults(("화가",), day)), (), "담쟁이미술관", day))
    for title, city, doing in FESTIVALS:
        day = random_day(rng, date(1996, 1, 1), date(2012, 12, 31))
        works.append(Work(title, "축제", doing, "", city, (), f"{city}청", day))
    return works


def credit(people: Mapping[str, Person], works: Sequence[Work]) -> dict[str, Person]:
    """The people with the titles of their works."""
    made: dict[str, list[str]] = {}
    for work in works:
        for name in (work.creator, *work.cast):
            made.setdefault(name, []).append(work.title)
    return {key: replace(person, works=tuple(made.get(person.name, ()))) for key, person in people.items()}
