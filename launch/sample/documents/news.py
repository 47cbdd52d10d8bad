"""News-like articles: every event is told several times, by other papers, in other words, with other facts chosen."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from random import Random

from launch.sample.documents import news_it_economy, news_society_culture, news_world_sports_politics
from launch.sample.documents import openers as openers_of_news
from launch.sample.documents.articles import Draft
from launch.sample.documents.facts import organisation_facts, person_facts
from launch.sample.documents.facts_of_things import city_facts
from launch.sample.documents.fresh import freshest
from launch.sample.documents.news_furniture import BYLINES, CAPTIONS, SURVIVORS, TAILS
from launch.sample.documents.speakers import ANYONE, ANYONE_SAYS, ATTRIBUTIONS, COPULAS, TWO_PART
from launch.sample.documents.telling import Fact, finish, link, tell
from launch.sample.entities import Event, World
from launch.sample.grammar import render, render_one
from launch.sample.josa import attach
from launch.sample.numbers_ko import news_day
from launch.sample.seeding import random_for

TEMPLATES = (
    news_it_economy.KIND_TEMPLATES | news_society_culture.KIND_TEMPLATES | news_world_sports_politics.KIND_TEMPLATES
)
GATHERINGS = ("festival", "exhibition", "policy", "research", "launch", "sky", "plant")  # with a press conference
IN_A_CITY = ("festival", "weather", "fire", "crash", "plant", "price", "policy", "budget", "sky", "exhibition")
NOTABLE = (
    "founded",
    "place",
    "size",
    "story",
    "product",
    "alternate",
    "founded_by",
    "school",
    "born",
    "known_for",
    "population",
    "landmark",
    "company",
    "work",
    "role",
    "founder",
)  # relations that a news article may recall


def headline(event: Event, rng: Random) -> str:
    """One of the headlines of an event."""
    return render_one(TEMPLATES[event.kind]["headline"], event.details, rng)


def write_news(world: World, seed: int, number: int) -> list[Draft]:
    """``number`` articles; every event is told once before any is told again."""
    seen: set[str] = set()
    events = world.events
    return [freshest(partial(_article, world, events[i % len(events)], i, seed), seen) for i in range(number)]


def _article(world: World, event: Event, number: int, seed: int, attempt: int) -> Draft:
    rng = random_for(seed, "news", number, attempt)
    templates = TEMPLATES[event.kind]
    slots = {**event.details, "day": news_day(event.day, rng)}
    sentences = [finish(render_one(templates["lead"], slots, rng))]
    facts = rng.sample(templates["fact"], min(len(templates["fact"]), rng.randint(2, 4)))
    body = _clauses(facts, slots, event.topic, rng)
    body += _quotations(event, rng)
    if event.kind in GATHERINGS and rng.random() < 0.4:
        body.append(render_one(SURVIVORS, slots, rng))
    rng.shuffle(body)
    sentences += body + (_background(world, event, rng) if rng.random() < 0.6 else [])
    head, tail = _furniture(world, event, rng)
    return Draft(f"news-{number:05}", "news", headline(event, rng), tuple(sentences), event.kind, " ", head, tail)


def _clauses(templates: Sequence[str], slots: dict[str, str], topic: str, rng: Random) -> list[str]:
    """The facts as sentences, some of them joined in pairs, some led in by an opening word."""
    left = list(templates)
    sentences = []
    while left:
        template = left.pop()
        clause = _opened(render(template, slots, rng), "{" in template, slots, topic, rng)
        if left and rng.random() < 0.5:
            sentences.append(f"{link(clause, rng)} {finish(render(left.pop(), slots, rng))}")
        else:
            sentences.append(finish(clause))
    return sentences


def _opened(clause: str, has_slots: bool, slots: dict[str, str], topic: str, rng: Random) -> str:
    """The clause, often with an opening word; clauses that any event could tell get one nearly always."""
    if rng.random() > (0.15 if has_slots else 0.6):
        return clause
    openers = list(openers_of_news.NEWS)
    openers += openers_of_news.ABOUT_CITY * 2 if topic in ("사회", "정치") and "bill" not in slots else ()
    openers += openers_of_news.ABOUT_ORG * 2 if "org" in slots else ()
    openers += openers_of_news.ABOUT_PERSON * 2 if "person" in slots else ()
    return f"{render_one(openers, slots, rng)} {clause}"


def _quotations(event: Event, rng: Random) -> list[str]:
    """One or two quotations; each group of quotes belongs to the speakers in its name."""
    groups = {name: quotes for name, quotes in TEMPLATES[event.kind].items() if name.startswith("quote: ")}
    name = rng.choice(sorted(groups))
    speaker = render(rng.choice(name.removeprefix("quote: ").split("/")), event.details, rng)
    first, second = rng.sample(groups[name], 2)
    sentences = [_quote(TWO_PART if rng.random() < 0.35 else ATTRIBUTIONS, speaker, first, second, rng)]
    if rng.random() < 0.25:
        other, second = rng.sample(ANYONE_SAYS, 2)
        sentences.append(_quote(ATTRIBUTIONS, render_one(ANYONE, {}, rng), other, second, rng))
    return sentences


def _quote(templates: Sequence[str], speaker: str, first: str, second: str, rng: Random) -> str:
    slots = {"speaker": speaker, "first": first, "second": second}
    slots |= {"ra": "라" if first.endswith(COPULAS) else "", "ra2": "라" if second.endswith(COPULAS) else ""}
    return render_one(templates, slots, rng)


def _background(world: World, event: Event, rng: Random) -> list[str]:
    """One or two known facts about who or where it happened, named in full."""
    choices: list[tuple[str, list[Fact]]] = []
    names = {o.name: o for o in world.organisations}
    people = {p.name: p for p in world.people}
    for key in ("org", "creator", "rival", "publisher", "org2"):
        if event.details.get(key) in names:
            organisation = names[event.details[key]]
            choices.append((organisation.name, organisation_facts(world, organisation, rng)))
    for key in ("person", "creator", "star", "head", "mayor"):
        if event.details.get(key) in people:
            person = people[event.details[key]]
            choices.append((person.name, person_facts(world, person, rng)))
    if event.kind in IN_A_CITY:
        choices.append((event.city, city_facts(world, world.city(event.city), rng)))
    if not choices:
        return []
    name, facts = rng.choice(choices)
    known = [fact for fact in facts if fact.relation in NOTABLE and any("{s}" in clause for clause in fact.clauses)]
    return tell(known[: rng.randint(1, 2)], (attach(name, "은"),), rng, join_share=0.7)


def _furniture(world: World, event: Event, rng: Random) -> tuple[str, tuple[str, ...]]:
    """Byline and lines after the text; a good third of the articles have none."""
    if rng.random() < 0.35:
        return "", ()
    reporter = rng.choice([p for p in world.people if p.occupation == "기자"])
    tags = [
        value.replace(" ", "")
        for key, value in event.details.items()
        if key in ("org", "person", "city", "work", "country", "product")
    ]
    slots = {
        "city_short": event.city[:-1],
        "media": reporter.employer,
        "reporter": reporter.name,
        "topic": event.topic,
        "org_or_city": event.organisation or event.city,
        "caption": headline(event, rng),
        "other": headline(rng.choice(world.events), rng),
        "tag1": tags[0],
        "tag2": tags[-1] if tags[-1] != tags[0] else "오늘의소식",
        "tag3": event.topic,
    }
    head = rng.choice(BYLINES).format_map(slots) + " " if rng.random() < 0.75 else ""
    if rng.random() < 0.2:
        head = rng.choice(CAPTIONS).format_map(slots) + "\n" + head
    tail = [template.format_map(slots) for template in rng.sample(TAILS, rng.choice((0, 1, 1, 2)))]
    return head, tuple(line for line in tail if line)
