"""People of the world: roles become persons with birthdays, families, schools and names.

Families are drawn among the people that roles already ask for, so kinship joins persons who appear elsewhere. Children
carry their father's surname; spouses keep theirs, as is usual in Korea.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from random import Random

from launch.sample import names
from launch.sample.entities import Person
from launch.sample.roles import Role

LAST_OLD_FASHION = 1972
GIVEN_NAMES = {
    ("남", True): names.OLD_MALE_GIVEN,
    ("남", False): names.MALE_GIVEN,
    ("여", True): names.OLD_FEMALE_GIVEN,
    ("여", False): names.FEMALE_GIVEN,
}
RELIGIONS = ("", "", "", "", "", "개신교", "천주교", "불교")


@dataclass(slots=True)
class Draft:
    """A person while families are being made."""

    role: Role
    gender: str
    born: date
    died: date | None
    name: str = ""
    father: Draft | None = None
    mother: Draft | None = None
    spouse: Draft | None = None
    children: list[Draft] = field(default_factory=list)


def random_day(rng: Random, first: date, last: date) -> date:
    """A day between two days, both included."""
    return first + timedelta(days=rng.randrange((last - first).days + 1))


def make_people(
    roles: Sequence[Role], cities: Sequence[str], schools: Sequence[tuple[str, date]], today: date, rng: Random
) -> dict[str, Person]:
    """One person for each role, by the role's key; names are unique."""
    drafts = [_draft(role, today, rng) for role in roles]
    _marry(drafts, rng)
    _name(drafts, rng)
    stage_names, pen_names = list(names.STAGE_NAMES), list(names.PEN_NAMES)
    rng.shuffle(stage_names)
    rng.shuffle(pen_names)
    people = {}
    for draft in drafts:
        alternate = ""
        if draft.role.occupation in ("가수", "음악가", "배우") and stage_names and rng.random() < 0.45:
            alternate = stage_names.pop()
        elif draft.role.occupation in ("소설가", "시인", "화가") and pen_names and rng.random() < 0.6:
            alternate = pen_names.pop()
        people[draft.role.key] = _finish(draft, alternate, cities, schools, rng)
    return people


def _draft(role: Role, today: date, rng: Random) -> Draft:
    year = rng.randint(*role.born)
    born = random_day(rng, date(year, 1, 1), date(year, 12, 31))
    is_old_founder = role.title == "창업자" and year < 1946
    died = None
    if year < 1935 or (is_old_founder and rng.random() < 0.6):
        last = min(date(year + 92, 1, 1), today - timedelta(days=400))
        died = random_day(rng, max(date(year + 66, 1, 1), date(1975, 1, 1)), max(last, date(1975, 12, 31)))
    gender = rng.choice("남남여" if year < 1960 else "남여")
    return Draft(role, role.gender or gender, born, died)


def _marry(drafts: Sequence[Draft], rng: Random) -> None:
    """Couples of similar age, and children among those who could be theirs."""
    men = [draft for draft in drafts if draft.gender == "남" and draft.born.year < 1994]
    women = [draft for draft in drafts if draft.gender == "여" and draft.born.year < 1996]
    rng.shuffle(men)
    for man in men:
        matches = [w for w in women if not w.spouse and abs(w.born.year - man.born.year) <= 6]
        if matches and rng.random() < 0.6:
            man.spouse = rng.choice(matches)
            man.spouse.spouse = man
    for father in sorted((m for m in men if m.spouse), key=lambda man: man.born):
        mother = father.spouse
        assert mother is not None
        young = [
            d
            for d in drafts
            if not d.father
            and 25 <= d.born.year - mother.born.year <= 40
            and 26 <= d.born.year - father.born.year <= 46
            and not (d.spouse and d.spouse in father.children)
        ]
        rng.shuffle(young)
        for child in young[: rng.choice((0, 1, 1, 2, 2))]:
            if child.spouse is None or child.spouse not in father.children:
                child.father, child.mother = father, mother
                father.children.append(child)
                mother.children.append(child)


def _name(drafts: Sequence[Draft], rng: Random) -> None:
    used: set[str] = set()
    for draft in sorted(drafts, key=lambda d: d.born):
        given = GIVEN_NAMES[draft.gender, draft.born.year < LAST_OLD_FASHION]
        while not draft.name or draft.name in used:
            surname = draft.father.name[0] if draft.father else rng.choice(names.SURNAMES)
            draft.name = surname + rng.choice(given)
        used.add(draft.name)


def _finish(
    draft: Draft, alternate: str, cities: Sequence[str], schools: Sequence[tuple[str, date]], rng: Random
) -> Person:
    open_schools = [name for name, founded in schools if founded.year <= draft.born.year + 19]
    siblings = [d.name for d in draft.father.children if d is not draft] if draft.father else []
    birthplace = draft.father.role.city if draft.father and rng.random() < 0.6 else rng.choice(cities)
    return Person(
        name=draft.name,
        gender=draft.gender,
        born=draft.born,
        birthplace=birthplace,
        residence=draft.role.city,
        occupation=draft.role.occupation,
        title=draft.role.title,
        school=rng.choice(open_schools) if open_schools and rng.random() < 0.85 else "",
        employer=draft.role.employer,
        alternate=alternate,
        religion=rng.choice(RELIGIONS),
        died=draft.died,
        place_of_death=rng.choice(cities) if draft.died else "",
        father=draft.father.name if draft.father else "",
        mother=draft.mother.name if draft.mother else "",
        spouse=draft.spouse.name if draft.spouse else "",
        children=tuple(child.name for child in draft.children),
        siblings=tuple(siblings),
    )
