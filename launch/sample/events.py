"""Events that the news tells, thirty-two kinds under the seven YNAT topics. Numbers and names are drawn once, here.

An event's ``details`` are strings ready to stand in a sentence (``"1,200억 원"``), so every telling agrees.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from random import Random

from launch.sample.entities import Event, Organisation, Person, Work, World
from launch.sample.events_data import AI_USES, CAUSES, FEATURES, FESTIVAL_MONTHS, KINDS, PICKS, PLANTS, WEATHER
from launch.sample.numbers_ko import clock, grouped, won
from launch.sample.people import random_day
from launch.sample.seeding import random_for

EVENTS_PER_KIND = 10
FIRST_DAY, LAST_DAY = date(2024, 1, 2), date(2025, 6, 28)
Details = dict[str, str]


def make_events(world: World) -> list[Event]:
    """``EVENTS_PER_KIND`` events of every kind, with dates before the world's today, in order of kind."""
    return [
        _event(world, topic, kind, number)
        for topic, kinds in KINDS.items()
        for kind in kinds
        for number in range(EVENTS_PER_KIND)
    ]


def _event(world: World, topic: str, kind: str, number: int) -> Event:
    rng = random_for(world.seed, "event", kind, number)
    details: Details = {"city": rng.choice([city.name for city in world.cities]), "number": str(number)}
    for name, rule in KINDS[topic][kind].items():
        word, _, rest = rule.partition(":")
        _draw(world, details, name, word, rest, rng)
    del details["number"]
    day = random_day(rng, FIRST_DAY, LAST_DAY)
    if "released" in details:
        day = date.fromisoformat(details.pop("released"))
    day = _fit_season(details, kind, day, rng)
    organisation = details.get("org", "")
    if organisation:
        details["city"] = world.organisation(organisation).city
    return Event(
        id=f"{kind}-{number:02}",
        topic=topic,
        kind=kind,
        day=day,
        city=details["city"],
        organisation=organisation,
        person=details.get("person", ""),
        details=details,
    )


def _fit_season(details: Details, kind: str, day: date, rng: Random) -> date:
    """The day, moved into the festival's month; the weather and the quarter reported follow the day."""
    if kind == "festival":
        year = 2024 if FESTIVAL_MONTHS[details["work"]] > 6 else rng.choice((2024, 2025))
        day = date(year, FESTIVAL_MONTHS[details["work"]], rng.randrange(2, 28))
    elif kind == "weather":
        details["weather"] = rng.choice(WEATHER[("겨울", "봄", "여름", "가을")[day.month % 12 // 3]])
    elif kind == "earnings":
        details["season"] = ("지난해 4분기", "올해 1분기", "올해 2분기", "올해 3분기")[(day.month - 1) // 3]
    return day


def _draw(world: World, details: Details, name: str, word: str, rest: str, rng: Random) -> None:
    """Put one detail (or the few that belong together) into ``details``."""
    if word in SPECIAL:
        details.update(SPECIAL[word](world, details, rng))
    elif word == "pick":
        details[name] = rng.choice(PICKS[rest])
    elif word == "pct":
        low, high = map(int, rest.split(":"))
        details[name] = f"{rng.randrange(low * 10, high * 10) / 10}%"
    elif word == "won":
        low, high = map(int, rest.split(":"))
        amount = rng.randrange(low, high)
        details[name] = won((amount if amount < 300 else amount // 10 * 10) * 10**8)
    elif word == "int":
        least, most, unit = rest.split(":")
        details[name] = _number(rng.randrange(int(least), int(most) + 1), unit)
    elif word == "org":
        details[name] = _organisation(world, details, rest, rng).name
    elif word == "person":
        details |= _of_person(rng.choice([p for p in world.people if p.occupation == rest]))
    elif word == "work":
        works = sorted((w for w in world.works if w.kind == rest), key=lambda work: work.released, reverse=True)
        details |= _of_work(world, works[int(details["number"]) % len(works)])
    elif word == "product":
        details |= _of_product(world, rest.split(","), int(details["number"]))
    else:
        raise ValueError(f"event detail {name}: no rule {word!r}; add one to SPECIAL")


def _number(number: int, unit: str) -> str:
    if unit == "년" and number > 1000:
        return f"{number}년"
    if unit == "만 원":
        return won(number // 100 * 100 * 10_000)
    if unit.startswith("만"):
        return f"{number}{unit}"
    return f"{grouped(number if number < 1000 else number // 10 * 10)}{unit}"


def _organisation(world: World, details: Details, rest: str, rng: Random) -> Organisation:
    kinds, _, fields = rest.partition(":")
    return rng.choice(
        [
            o
            for o in world.organisations
            if o.kind in kinds.split(",")
            and (not fields or o.field in fields.split(","))
            and o.name != details.get("org")
            and o.dissolved is None
        ]
    )


def _of_person(person: Person) -> Details:
    return {"person": person.name, "title": person.title, "party": person.employer}


def _of_work(world: World, work: Work) -> Details:
    details = {"work": work.title, "creator": work.creator, "genre": work.genre, "premise": work.premise}
    details |= {"publisher": work.publisher, "since": str(work.released.year)}
    if work.cast:
        details |= {"star": work.cast[0], "costar": work.cast[1], "third": work.cast[2]}
    if work.kind == "전시":
        details["city"] = next(venue.city for venue in world.venues if venue.name == work.publisher)
    if work.kind != "축제":
        details["released"] = work.released.isoformat()
    else:
        details |= {"city": work.creator, "doing": work.genre}
    return details


def _of_product(world: World, kinds: Sequence[str], number: int) -> Details:
    makers = {o.name for o in world.organisations if o.dissolved is None}
    products = [p for p in world.products if p.kind in kinds and p.maker in makers]
    product = products[number * 7 % len(products)]
    released = product.released.isoformat()
    return {
        "released": released,
        "product": product.name,
        "noun": product.kind,
        "org": product.maker,
        "price": won(product.price),
    }


def _researcher(world: World, details: Details, rng: Random) -> Details:
    staff = [p for p in world.people if p.employer == details["org"] and p.died is None]
    experts = [p for p in staff if p.occupation in ("연구원", "학자")] or staff
    return _of_person(rng.choice(experts))


def _astronomers(world: World, details: Details, rng: Random) -> Details:
    return {"org": "한국별빛천문연구소"}


def _donor(world: World, details: Details, rng: Random) -> Details:
    known = ("배우", "가수", "축구 선수", "야구 선수", "배구 선수", "농구 선수", "기업인")
    return _of_person(rng.choice([p for p in world.people if p.occupation in known and p.died is None]))


def _direction(world: World, details: Details, rng: Random) -> Details:
    direction = rng.choice(("상승", "상승", "하락"))
    up = direction == "상승"
    return {
        "direction": direction,
        "cause": rng.choice(CAUSES[direction]),
        "rose": "올랐" if up else "내렸",
        "grew": "늘었" if up else "줄었",
        "risen": "오른" if up else "내린",
        "growth": "증가" if up else "감소",
        "rise": "오름세" if up else "내림세",
    }


def _country(world: World, details: Details, rng: Random) -> Details:
    country = rng.choice(world.countries)
    return {
        "country": country.name,
        "capital": country.capital,
        "region": country.region,
        "leader": country.leader,
        "leader_title": country.leader_title,
    }


def _countries(world: World, details: Details, rng: Random) -> Details:
    one, two = rng.sample(world.countries, 2)
    first = {"country": one.name, "capital": one.capital, "leader": one.leader, "leader_title": one.leader_title}
    return first | {"country2": two.name, "leader2": two.leader, "leader_title2": two.leader_title}


def _magnitude(world: World, details: Details, rng: Random) -> Details:
    return {"magnitude": f"규모 {rng.randrange(54, 75) / 10}", "depth": f"{rng.randrange(6, 60)}km"}


def _clock(world: World, details: Details, rng: Random) -> Details:
    return {"time": clock(rng.randrange(24), rng.randrange(0, 60, 5))}


def _city(world: World, details: Details, rng: Random) -> Details:
    city = rng.choice(world.cities)
    return {"city": city.name, "mayor": city.mayor, "mayor_title": "시장" if city.name.endswith("시") else "군수"}


def _player(world: World, details: Details, rng: Random) -> Details:
    player = rng.choice([p for p in world.people if p.occupation.endswith(" 선수")])
    club = world.organisation(player.employer)
    sport = player.occupation.split()[0]
    nouns = {"축구": "골", "야구": "안타", "농구": "득점", "배구": "서브 득점"}
    return {
        "person": player.name,
        "title": player.title,
        "org": club.name,
        "sport": sport,
        "head": club.head,
        "point": nouns[sport],
    }


def _match(world: World, details: Details, rng: Random) -> Details:
    player = _player(world, details, rng)
    rivals = [o.name for o in world.organisations if o.field == player["sport"] and o.name != player["org"]]
    ranges = {"축구": (1, 5), "야구": (2, 12), "농구": (71, 99), "배구": (3, 3)}
    score = rng.randint(*ranges[player["sport"]])
    lost = rng.randrange(3) if player["sport"] == "배구" else max(0, score - rng.randrange(1, 5))
    return player | {
        "rival": rng.choice(rivals),
        "score": f"{score}-{lost}",
        "city": world.organisation(player["org"]).city,
    }


def _transfer(world: World, details: Details, rng: Random) -> Details:
    player = _player(world, details, rng)
    rivals = [o.name for o in world.organisations if o.field == player["sport"] and o.name != player["org"]]
    return player | {"old": rng.choice(rivals)}


def _plant(world: World, details: Details, rng: Random) -> Details:
    return {"plant": PLANTS[world.organisation(details["org"]).field]}


def _ai_use(world: World, details: Details, rng: Random) -> Details:
    return {"use": rng.choice(AI_USES[world.organisation(details["org"]).kind])}


def _feature(world: World, details: Details, rng: Random) -> Details:
    sold = rng.randrange(5, 80)
    unit = {"서비스 로봇": "00대", "전기차": "00대", "애플리케이션": "만 개", "게임": "만 장"}.get(
        details["noun"], "만 대"
    )
    target = f"{sold * 100:,}대" if unit == "00대" else f"{sold}{unit}"
    return {"feature": rng.choice(FEATURES[details["noun"]]), "target": target}


SPECIAL: Mapping[str, Callable[[World, Details, Random], Details]] = {
    "researcher": _researcher,
    "astronomers": _astronomers,
    "donor": _donor,
    "direction": _direction,
    "country": _country,
    "countries": _countries,
    "magnitude": _magnitude,
    "clock": _clock,
    "city": _city,
    "player": _player,
    "match": _match,
    "transfer": _transfer,
    "plant": _plant,
    "ai_use": _ai_use,
    "feature": _feature,
}
