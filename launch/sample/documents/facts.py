"""Facts of the world as clauses with their values: one list for each organisation, person and so on."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from launch.sample.documents.organisation_relations import ORGANISATION
from launch.sample.documents.person_relations import PERSON
from launch.sample.documents.telling import Fact
from launch.sample.entities import Organisation, Person, World
from launch.sample.numbers_ko import full_day, grouped, won

MakeFact = Callable[..., Fact]  # a group of clauses and the values they ask for
HAS_HEADQUARTERS = ("기업", "언론사", "기획사", "출판사", "영화사")
DEFINITIONS = {"기업": "definition", "구단": "definition_club", "밴드": "definition_band"}
ROMANCE = {"남": "아내", "여": "남편"}


def organisation_facts(world: World, o: Organisation, rng: Random) -> list[Fact]:
    """Every fact of an organisation, the definition first, the others in random order."""
    city = world.city(o.city)
    base = {"city": o.city, "province": city.province, "kind": o.kind, "field": o.field, "year": o.founded.year,
            "date": full_day(o.founded), "s_bare": o.name}  # fmt: skip
    base["hq"] = "본사" if o.kind in HAS_HEADQUARTERS else "본부"
    place = "place_club" if o.kind == "구단" else "place"
    facts = [Fact(name, ORGANISATION[name], base) for name in ("founded", place)]
    stories = ORGANISATION.get(f"story_{o.kind}", ORGANISATION["story"])
    facts += [Fact("story", (clause,), base) for clause in rng.sample(stories, 0 if o.dissolved else 2)]
    if o.founder:
        founder = {**base, "founder": o.founder, "born_city": world.person(o.founder).birthplace}
        facts.append(Fact("founded_by", ORGANISATION["founded_by"], founder))
    if o.head and o.kind != "밴드" and not o.dissolved:
        facts.append(Fact("head", ORGANISATION["head"], {**base, "head": o.head, "title": o.head_title}))
    if o.kind != "밴드" and not o.dissolved:
        group = {"대학교": "size_students", "단체": "size_members", "정당": "size_members"}.get(o.kind, "size")
        facts.append(Fact("size", ORGANISATION[group], {**base, "size": grouped(o.size)}))
    for name, value in (("alternate", o.alternate), ("member_of", o.member_of)):
        if value:
            facts.append(Fact(name, ORGANISATION[name], {**base, name: value}))
    if o.affiliation:
        group = "affiliation_political" if o.kind == "정당" else "affiliation_religious"
        facts.append(Fact("affiliation", ORGANISATION[group], {**base, "affiliation": o.affiliation}))
    if o.dissolved:
        facts.append(Fact("dissolved", ORGANISATION["dissolved"], {**base, "dissolved": full_day(o.dissolved)}))
    facts += _product_facts(world, o, base) + _member_facts(world, o, base)
    rng.shuffle(facts)
    name = DEFINITIONS.get(o.kind, "definition_other")
    return [Fact("definition", ORGANISATION[name], base), *facts]


def _product_facts(world: World, o: Organisation, base: dict[str, object]) -> list[Fact]:
    products = [product for product in world.products if product.maker == o.name]
    return [
        Fact("product", ORGANISATION["product"],
             {**base, "product": p.name, "noun": p.kind, "price": won(p.price), "year": p.released.year})
        for p in products
    ]  # fmt: skip


def _member_facts(world: World, o: Organisation, base: dict[str, object]) -> list[Fact]:
    if not o.members:
        return []
    slots = dict(base)
    for word, name in zip(("first", "second", "third", "fourth"), o.members, strict=False):
        slots |= {word: name, f"{word}_part": world.person(name).title}
    return [Fact("members", ORGANISATION["members_band" if o.kind == "밴드" else "members_club"], slots)]


def person_facts(world: World, p: Person, rng: Random) -> list[Fact]:
    """Every fact of a person, the definition and the birth first."""
    base = {"occupation": p.occupation, "birthplace": p.birthplace, "residence": p.residence, "year": p.born.year,
            "date": full_day(p.born), "title": p.title, "employer": p.employer}  # fmt: skip

    def fact(group: str, **values: object) -> Fact:
        return Fact(group, PERSON[group], {**base, **values})

    facts = []
    if p.school:
        facts.append(fact("school", school=p.school))
    if p.employer and p.title != "창업자" and not p.died:
        facts.append(fact("employer"))
    if p.alternate:
        group = "stage" if p.occupation in ("가수", "음악가", "배우") else "pen"
        facts.append(fact(group, alternate=p.alternate))
    if p.religion:
        facts.append(fact("religion", religion=p.religion))
    if p.died:
        age = p.died.year - p.born.year - ((p.died.month, p.died.day) < (p.born.month, p.born.day))
        facts.append(fact("died", died=full_day(p.died), place_of_death=p.place_of_death, age=age))
    else:
        facts.append(fact("residence"))
    facts += _family_facts(world, p, fact, rng) + _work_facts(world, p, fact)
    facts += [Fact("character", (clause,), base) for clause in rng.sample(PERSON["character"], 2)]
    rng.shuffle(facts)
    return [fact("definition_dead" if p.died else "definition"), fact("born"), *facts]


def _family_facts(world: World, p: Person, fact: MakeFact, rng: Random) -> list[Fact]:
    def job(name: str) -> str:
        return world.person(name).occupation

    facts = []
    if p.spouse:
        facts.append(fact("spouse", spouse=p.spouse, spouse_job=job(p.spouse), spouse_word=ROMANCE[p.gender]))
    if p.father:
        word = "아들" if p.gender == "남" else "딸"
        parents = {"father": p.father, "mother": p.mother, "father_job": job(p.father), "mother_job": job(p.mother)}
        facts.append(fact(rng.choice(("father", "father", "mother")), child_word=word, **parents))
    if p.children:
        facts.append(fact("children", children=", ".join(p.children)))
    for sibling in p.siblings[:1]:
        genders = {p.gender, world.person(sibling).gender}
        group = "sibling_other" if len(genders) > 1 else "sibling_brother" if "남" in genders else "sibling_sister"
        facts.append(fact(group, sibling=sibling, sibling_job=job(sibling)))
    return facts


def _work_facts(world: World, p: Person, fact: MakeFact) -> list[Fact]:
    facts = []
    for work in [work for work in world.works if p.name in (work.creator, *work.cast)][:3]:
        group = "work" if work.creator == p.name else "role"
        facts.append(fact(group, work=work.title, work_kind=work.kind, year=work.released.year))
    for o in world.organisations:
        if o.kind == "밴드" and p.name in o.members:
            facts.append(fact("band", band=o.name, year=o.founded.year))
        if o.founder == p.name:
            facts.append(fact("founder", org=o.name, field=o.field, city=o.city, year=o.founded.year))
    return facts
