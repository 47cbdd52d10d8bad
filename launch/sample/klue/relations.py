"""KLUE-RE from the sample's world: one sentence gives several examples, by which two of its entities are asked about.

Sixteen of the thirty labels occur, no_relation for a third of the examples; the same sentence with another pair has
another label, so that the pair decides, not the wording alone (KLUE 3.5).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from launch.sample.entities import Organisation, Person, World
from launch.sample.klue.facts import STAFF
from launch.sample.klue.layout import SIDES, SLOT, Filled, cast, draw_distinct, expand, fill, write_json
from launch.sample.klue.relation_statements import ORGANISATIONS, PEOPLE
from launch.sample.numbers_ko import full_day
from launch.sample.seeding import random_for

NO_RELATION = "no_relation"
OFFICIAL_LABELS = (
    NO_RELATION, "org:dissolved", "org:founded", "org:place_of_headquarters", "org:alternate_names", "org:member_of",
    "org:members", "org:political/religious_affiliation", "org:product", "org:founded_by", "org:top_members/employees",
    "org:number_of_employees/members", "per:date_of_birth", "per:date_of_death", "per:place_of_birth",
    "per:place_of_death", "per:place_of_residence", "per:origin", "per:employee_of", "per:schools_attended",
    "per:alternate_names", "per:parents", "per:children", "per:siblings", "per:spouse", "per:other_family",
    "per:colleagues", "per:product", "per:religion", "per:title",
)  # fmt: skip
TYPES = {
    "PER": ("who", "spouse", "other", "father", "founder", "head", "alias"),
    "ORG": ("org", "org2", "school"),
    "LOC": ("city", "city2", "birthplace"),
    "DAT": ("date", "year"),
    "POH": ("title", "occupation", "work", "product"),
}
TYPE_OF = {slot: kind for kind, slots in TYPES.items() for slot in slots}


class Asked(NamedTuple):
    """A sentence template with the pair it is asked about."""

    template: str
    subject: str
    object: str
    label: str


def read_table(table: Sequence[tuple[str, str]]) -> list[Asked]:
    """Every listed pair of every sentence."""
    asked = []
    for template, pairs in table:
        for pair in pairs.split(", "):
            slots, label = pair.split(" ")
            subject, thing = slots.split(">")
            asked.append(Asked(template, subject, thing, NO_RELATION if label == "-" else label))
    return asked


class Row(NamedTuple):
    """What is known about one person or organisation, as slots."""

    table: str
    slots: Mapping[str, str]


ASKED = {"people": read_table(PEOPLE), "organisations": read_table(ORGANISATIONS)}
LABELS = sorted({asked.label for table in ASKED.values() for asked in table} - {NO_RELATION})


def write_relations(world: World, seed: int, folder: Path, counts: Mapping[str, int]) -> None:
    """Write klue-re-v1.1_train.json, _dev.json and relation_list.json."""
    sides = cast([*_person_rows(world), *_organisation_rows(world)], world.seed, "klue-re")
    taken: set[Hashable] = set()
    for side in SIDES:
        records = draw_distinct(
            lambda attempt, side=side: draw_example(seed, side, attempt, sides[side]),  # type: ignore[misc]
            _pair_asked if side == "train" else _sentence,  # dev shares no sentence with train
            counts[side],
            taken,
            random_for(seed, "order", "klue-re", side),
        )
        taken |= {_sentence(record) for record in records}
        for number, record in enumerate(records):
            record["guid"] = f"klue-re-v1_{side}_{number:05}"
        write_json(folder / f"klue-re-v1.1_{side}.json", records)
    write_json(folder / "relation_list.json", {"relations": list(OFFICIAL_LABELS)})


def _pair_asked(record: dict[str, Any]) -> Hashable:
    return record["sentence"], record["subject_entity"]["word"], record["object_entity"]["word"]


def _sentence(record: dict[str, Any]) -> Hashable:
    return record["sentence"]


def draw_example(seed: int, side: str, attempt: int, rows: Sequence[Row]) -> dict[str, Any]:
    """One record; every third has no relation, the other labels take turns."""
    rng = random_for(seed, "klue-re", side, attempt)
    label = NO_RELATION if attempt % 3 == 2 else LABELS[(attempt - attempt // 3) % len(LABELS)]
    asked_by_table = {name: [a for a in table if a.label == label] for name, table in ASKED.items()}
    name, asked = rng.choice([(name, a) for name, table in asked_by_table.items() for a in table])
    needed = {slot[1] for slot in SLOT.finditer(asked.template)} - {"", "other", "org2", "city2"}
    row = rng.choice([row for row in rows if row.table == name and needed <= set(row.slots)])
    filled = fill(expand(asked.template, rng), _with_strangers(row, rows, rng))
    return {
        "guid": "",
        "sentence": filled.text,
        "subject_entity": _entity(filled, asked.subject, name),
        "object_entity": _entity(filled, asked.object, name),
        "label": label,
        "source": "sample-news" if name == "organisations" else "sample-encyclopedia",
    }


def _with_strangers(row: Row, rows: Sequence[Row], rng: Random) -> dict[str, str]:
    """The row's slots and another person, organisation and city that have nothing to do with it."""
    known = set(row.slots.values())
    strangers = {"other": ("people", "who"), "org2": ("organisations", "org"), "city2": ("organisations", "city")}
    slots = dict(row.slots)
    for slot, (table, name) in strangers.items():
        slots[slot] = rng.choice([r.slots[name] for r in rows if r.table == table and r.slots[name] not in known])
    return slots


def _entity(filled: Filled, slot: str, table: str) -> dict[str, Any]:
    start, end = next((start, end) for name, start, end in filled.spans if name == slot)
    kind = "ORG" if slot == "alias" and table == "organisations" else TYPE_OF[slot]
    return {"word": filled.text[start:end], "start_idx": start, "end_idx": end - 1, "type": kind}


def _person_rows(world: World) -> Iterator[Row]:
    for person in world.people:
        if person.died is None:
            yield Row("people", {k: v for k, v in _person_slots(world, person).items() if v})


def _person_slots(world: World, person: Person) -> dict[str, str]:
    works = [work.title for work in world.works if work.creator == person.name and work.kind in ("책", "영화", "앨범")]
    employed = person.occupation in STAFF and person.title != "창업자"
    return {
        "who": person.name,
        "occupation": person.occupation,
        "org": person.employer if employed else "",
        "title": person.title if employed else "",
        "city": person.residence,
        "birthplace": person.birthplace if person.birthplace != person.residence else "",
        "date": full_day(person.born),
        "year": f"{person.born.year}년",
        "school": person.school,
        "spouse": person.spouse,
        "father": person.father,
        "child": "아들" if person.gender == "남" else "딸",
        "alias": person.alternate,
        "work": works[0] if works else "",
    }


def _organisation_rows(world: World) -> Iterator[Row]:
    for org in world.organisations:
        if org.kind == "기업" and org.dissolved is None:
            yield Row("organisations", {k: v for k, v in _organisation_slots(org).items() if v})


def _organisation_slots(org: Organisation) -> dict[str, str]:
    return {
        "org": org.name,
        "alias": org.alternate if org.alternate != org.name else "",
        "field": org.field,
        "year": f"{org.founded.year}년",
        "founder": org.founder,
        "head": org.head,
        "title": org.head_title,
        "city": org.city,
        "product": org.products[0] if org.products else "",
    }
