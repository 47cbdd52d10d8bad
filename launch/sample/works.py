"""Films, series, books, albums, exhibitions and festivals, with their makers among the people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from random import Random

from launch.sample.entities import Organisation, Person, Work
from launch.sample.names import LABELS, PUBLISHERS, STUDIOS
from launch.sample.people import random_day
from launch.sample.works_data import ALBUMS, BOOKS, EXHIBITIONS, FESTIVALS, FILMS, SERIES

WRITERS = {  # by genre; other books are by scholars too
    "시집": ("시인",),
    "장편소설": ("소설가",),
    "소설집": ("소설가",),
    "동화": ("소설가",),
    "산문집": ("소설가",),
}
Adults = Callable[[Sequence[str], date], list[str]]  # occupations and a day to names of living people of age


def make_works(
    people: Mapping[str, Person], organisations: Sequence[Organisation], today: date, rng: Random
) -> list[Work]:
    """All works; makers and casts were at least 22 years old when a work came out."""

    def adults(occupations: Sequence[str], day: date) -> list[str]:
        return [
            person.name
            for occupation in occupations
            for person in people.values()
            if person.occupation == occupation and person.died is None and day.year - person.born.year >= 22
        ]

    bands = {organisation.name: organisation.founded for organisation in organisations if organisation.kind == "밴드"}
    works = [*_screened(adults, rng), *_books(adults, rng), *_albums(adults, bands, rng)]
    for title in EXHIBITIONS:
        day = random_day(rng, date(2022, 1, 1), date(2025, 5, 31))
        works.append(Work(title, "전시", "미술 전시", "", rng.choice(adults(("화가",), day)), (), "담쟁이미술관", day))
    for title, city, doing in FESTIVALS:
        day = random_day(rng, date(1996, 1, 1), date(2012, 12, 31))
        works.append(Work(title, "축제", doing, "", city, (), f"{city}청", day))
    return works


def _released(rng: Random) -> date:
    return random_day(rng, date(2012, 1, 1), date(2025, 4, 30))


def _screened(adults: Adults, rng: Random) -> Iterator[Work]:
    for kind, listed, publishers in (("영화", FILMS, STUDIOS), ("드라마", SERIES, ("다솜방송",))):
        for title, genre, premise in listed:
            day = _released(rng)
            director = rng.choice(adults(("영화감독",), day))
            cast = tuple(rng.sample(adults(("배우",), day), 3))
            publisher, rating = rng.choice(publishers), rng.randrange(52, 96) / 10
            yield Work(title, kind, genre, premise, director, cast, publisher, day, rating)


def _books(adults: Adults, rng: Random) -> Iterator[Work]:
    for title, genre, premise in BOOKS:
        day = _released(rng)
        writers = WRITERS.get(genre, ("학자", "소설가"))
        author, publisher = rng.choice(adults(writers, day)), rng.choice(PUBLISHERS)
        yield Work(title, "책", genre, premise, author, (), publisher, day, rng.randrange(60, 97) / 10)


def _albums(adults: Adults, bands: Mapping[str, date], rng: Random) -> Iterator[Work]:
    for title in ALBUMS:
        day = _released(rng)
        genre = rng.choice(("발라드", "포크", "인디 록", "재즈 팝"))
        creator = rng.choice(adults(("가수",), day) + [name for name, founded in bands.items() if founded < day])
        yield Work(title, "앨범", genre, "", creator, (), rng.choice(LABELS), day, rng.randrange(60, 97) / 10)


def credit(people: Mapping[str, Person], works: Sequence[Work]) -> dict[str, Person]:
    """The people with the titles of their works."""
    made: dict[str, list[str]] = {}
    for work in works:
        for name in (work.creator, *work.cast):
            made.setdefault(name, []).append(work.title)
    return {key: replace(person, works=tuple(made.get(person.name, ()))) for key, person in people.items()}
