"""Dialogues: bookings of tables, rooms, taxis and doctors, ways by train, sights, service calls, chats of friends.

Venues answer with their own traits, so a hotel with parking has parking in every dialogue.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from random import Random

from launch.sample.documents import dialogue_templates as templates
from launch.sample.documents import talk_templates
from launch.sample.documents.articles import Draft
from launch.sample.documents.facts_of_things import KINDS_SHOWN
from launch.sample.documents.fresh import freshest
from launch.sample.entities import Venue, World
from launch.sample.grammar import render_one
from launch.sample.numbers_ko import casual_won, clock, native, weekday
from launch.sample.seeding import random_for

QUESTION_TRAITS = {
    "parking": "주차 가능",
    "internet": "인터넷 가능",
    "outdoor": "야외석 유무",
    "alcohol": "주류 판매",
    "breakfast": "조식 가능",
    "pool": "수영장 유무",
    "gym": "헬스장 유무",
    "spa": "스파 유무",
    "view": "경치 좋은",
    "learn": "교육적",
    "history": "역사적",
}
PRICE_WORDS = {"저렴": "저렴한", "적당": "적당한", "비싼": "비싼", "": ""}
CLOSING = "closing"  # marks where the farewell begins; taken out again
Slots = dict[str, str]
Groups = dict[str, tuple[str, ...]]


def write_dialogues(world: World, seed: int, number: int) -> list[Draft]:
    """``number`` dialogues, the kinds in turn; utterances are lines that begin with the speaker."""
    kinds: tuple[tuple[str, Callable[[World, Random], list[str]]], ...] = (
        ("식당", lambda w, r: _booking(w, "식당", templates.RESTAURANT, r)),
        ("숙소", lambda w, r: _booking(w, "숙소", templates.HOTEL, r)),
        ("관광", lambda w, r: _booking(w, "관광", templates.SIGHT, r)),
        ("택시", _taxi),
        ("지하철", _subway),
        ("서비스", _service),
        ("병원", _hospital),
        ("친구", _friends),
    )
    seen: set[str] = set()
    return [freshest(partial(_dialogue, world, *kinds[i % len(kinds)], i, seed), seen) for i in range(number)]


def _dialogue(
    world: World, kind: str, make: Callable[[World, Random], list[str]], number: int, seed: int, attempt: int
) -> Draft:
    lines = make(world, random_for(seed, "dialogue", number, attempt))
    gap = next((at for at, line in enumerate(lines) if line == CLOSING), len(lines) - 1)
    spoken = tuple(line for line in lines if line != CLOSING)
    return Draft(f"dialogue-{number:05}", "dialogue", "", spoken, kind, "\n", gap=gap)


def _common(world: World, rng: Random) -> Slots:
    day = world.today + timedelta(days=rng.randrange(1, 20))
    day2 = day + timedelta(days=rng.randrange(1, 6))
    hour, minute = rng.randrange(9, 21), rng.choice((0, 0, 10, 20, 30, 30, 40))
    names = {"day": day, "other_day": day2, "day2": day2}
    slots = {
        key: rng.choice((weekday(d), f"{d.month}월 {d.day}일", f"{d.day}일 {weekday(d)}")) for key, d in names.items()
    }
    people = rng.randint(2, 9)
    return slots | {
        "time": rng.choice((clock(hour, minute), f"{hour}:{minute:02}", clock(hour, minute))),
        "other_time": clock(hour + 1, minute),
        "people": native(people),
        "nights": str(rng.randint(1, 4)),
        "code": f"{''.join(rng.choices('ABCDEFGHJKMNPQRSTUVWXYZ', k=2))}{rng.randrange(10, 99)}{rng.choice('KLMNP')}",
        "city": rng.choice(world.cities).name,
        "minutes": str(rng.randrange(4, 48)),
        "friend": rng.choice(world.people).name[1:],
        "agent": rng.choice(world.people).name,
    }


def _about(venue: Venue, rng: Random) -> Slots:
    price = casual_won(venue.price, rng) if venue.price else "무료"
    return {
        "venue": venue.name,
        "city": venue.city,
        "area": venue.area,
        "kind": KINDS_SHOWN.get(venue.kind, venue.kind),
        "station": venue.station,
        "speciality": venue.speciality,
        "price": price,
        "fee": price,
        "rating": f"{venue.rating}",
        "price_word": PRICE_WORDS[venue.price_range],
        "minutes": str(2 + len(venue.name) % 9),
    }


def _say(who: str, groups: Groups, group: str, slots: Slots, rng: Random) -> str:
    return f"{who}: {render_one(groups[group], slots, rng)}"


def _opened(who: str, openers: Sequence[str], lines: Sequence[str], slots: Slots, rng: Random) -> str:
    """An utterance with something before it; an agreeing 네 stays in front."""
    said = render_one(lines, slots, rng)
    opener = render_one(openers, slots, rng) if rng.random() < 0.75 else ""
    for answer in ("네, ", "아니요, ", "아쉽지만 "):
        if said.startswith(answer):
            return f"{who}: {answer}{opener} {said.removeprefix(answer)}".replace("  ", " ")
    return f"{who}: {opener} {said}".replace("  ", " ")


def _booking(world: World, domain: str, groups: Groups, rng: Random) -> list[str]:
    venue = rng.choice([venue for venue in world.venues if venue.domain == domain])
    slots = _common(world, rng) | _about(venue, rng)
    slots["total"] = casual_won(venue.price * int(slots["nights"]), rng)
    user, agent = rng.choice((("고객", "상담원"), ("손님", "안내원"), ("사용자", "예약봇")))
    lines = [_say(agent, templates.HELLO, "S", slots, rng)] if rng.random() < 0.4 else []
    lines += [_say(user, groups, "ask", slots, rng), _say(agent, groups, "offer", slots, rng)]
    questions = [name.split()[1] for name in groups if name.startswith("question")]
    for question in rng.sample(questions, rng.randint(1, 3)):
        answer = question
        if question in QUESTION_TRAITS:
            answer = f"{question} {'yes' if venue.traits[QUESTION_TRAITS[question]] else 'no'}"
        lines.append(_opened(user, templates.QUESTION_OPENERS, groups[f"question {question}"], slots, rng))
        lines.append(_opened(agent, templates.ANSWER_OPENERS, templates.ANSWERS[answer], slots, rng))
    if "book" in groups:
        lines += _book(groups, slots, user, agent, rng)
    return lines + _close(user, agent, slots, rng)


def _book(groups: Groups, slots: Slots, user: str, agent: str, rng: Random) -> list[str]:
    lines = [_say(user, groups, "book", slots, rng)]
    if rng.random() < 0.25:
        lines += [_say(agent, groups, "full", slots, rng), _say(user, groups, "accept", slots, rng)]
        slots |= {"time": slots["other_time"]} if "{other_time" in groups["full"][0] else {"day": slots["other_day"]}
    return [*lines, _say(agent, groups, "confirm", slots, rng)]


def _close(user: str, agent: str, slots: Slots, rng: Random) -> list[str]:
    slots = {"about": slots.get("venue") or slots.get("product") or slots.get("goal", ""), **slots}
    lines = [CLOSING]
    if rng.random() < 0.35:
        lines += [_say(agent, templates.HELLO, "more", slots, rng), _say(user, templates.HELLO, "no", slots, rng)]
    else:
        lines.append(_say(user, templates.HELLO, "thanks", slots, rng))
    if rng.random() < 0.6:
        lines.append(_say(agent, templates.HELLO, "bye", slots, rng))
    return lines


def _taxi(world: World, rng: Random) -> list[str]:
    start, goal = rng.sample(world.venues, 2)
    places = [start.name, rng.choice(world.stations)]
    slots = _common(world, rng) | {
        "start": rng.choice(places),
        "goal": goal.name,
        "taxi": rng.choice(("일반", "고급", "친환경", "대형")),
        "color": rng.choice(("흰색", "검은색", "은색", "파란색")),
        "car": rng.choice(("승용차", "승합차", "전기차")),
    }
    groups = templates.TAXI
    lines = [_say("고객", groups, "ask", slots, rng), _say("상담원", groups, "when", slots, rng)]
    lines += [_say("고객", groups, "time", slots, rng), _say("상담원", groups, "done", slots, rng)]
    return lines + _close("고객", "상담원", slots, rng)


def _subway(world: World, rng: Random) -> list[str]:
    start, goal, transfer = rng.sample(world.stations, 3)
    slots = _common(world, rng) | {
        "start": start,
        "goal": goal,
        "transfer": transfer,
        "fare": f"{rng.choice((1450, 1550, 1650, 1850)):,}",
        "exit": str(rng.randint(1, 8)),
        "goal_place": rng.choice(("시장", "광장", "공원", "도서관")),
    }
    groups = templates.SUBWAY
    about = rng.choice(("", "", " time"))
    lines = [_say("승객", groups, f"ask{about}", slots, rng), _say("역무원", groups, f"answer{about}", slots, rng)]
    if rng.random() < 0.7:
        topic = rng.choice(("transfer", "lift", "fare"))
        lines.append(_say("승객", groups, f"question {topic}", slots, rng))
        lines.append(_say("역무원", groups, f"reply {topic}", slots, rng))
    return lines + _close("승객", "역무원", slots, rng)


def _service(world: World, rng: Random) -> list[str]:
    products = [p for p in world.products if p.kind in ("스마트폰", "서비스 로봇", "보조 배터리")]
    product = rng.choice(products)
    slots = _common(world, rng) | {
        "product": product.name,
        "maker": product.maker,
        "price": casual_won(product.price, rng),
    }
    past = world.today - timedelta(days=rng.randrange(3, 25))
    slots["day"] = f"{past.month}월 {past.day}일"
    groups = talk_templates.SERVICE
    lines = [_say("고객", groups, "problem", slots, rng), _say("상담원", groups, "sorry", slots, rng)]
    lines += [_say("고객", groups, "detail", slots, rng), _say("상담원", groups, "solve", slots, rng)]
    return lines + _close("고객", "상담원", slots, rng)


def _hospital(world: World, rng: Random) -> list[str]:
    hospital = rng.choice([o for o in world.organisations if o.kind == "병원"])
    part, pain = rng.choice(
        (
            ("이비인후과", "목이 붓고 열이 나요."),
            ("정형외과", "무릎이 시큰거려요."),
            ("치과", "어금니가 욱신거려요."),
            ("안과", "눈이 침침해요."),
            ("내과", "속이 계속 쓰려요."),
            ("피부과", "팔에 두드러기가 났어요."),
            ("소아과", "아이가 밤새 기침을 해요."),
            ("재활의학과", "허리가 뻐근해요."),
        )
    )
    slots = _common(world, rng) | {"hospital": hospital.name, "part": part, "pain": pain, "about": f"{part} 예약"}
    slots["doctor"] = rng.choice(world.people).name
    groups = talk_templates.HOSPITAL
    lines = [_say("환자", groups, "ask", slots, rng), _say("접수원", groups, "when", slots, rng)]
    lines += [_say("환자", groups, "yes", slots, rng), _say("접수원", groups, "done", slots, rng)]
    return lines + _close("환자", "접수원", slots, rng)


def _friends(world: World, rng: Random) -> list[str]:
    venue = rng.choice([venue for venue in world.venues if venue.domain == "식당"])
    work = rng.choice([work for work in world.works if work.kind in ("영화", "드라마", "책", "앨범")])
    product = rng.choice(world.products)
    slots = _common(world, rng) | _about(venue, rng)
    slots |= {
        "work": work.title,
        "creator": work.creator,
        "product": product.name,
        "price": casual_won(product.price, rng),
    }
    first, second = rng.sample([person.name[1:] for person in world.people if len(person.name) == 3], 2)
    slots |= {"maker": product.maker, "premise": work.premise or "떠난 사람을 그리워하는"}
    slots |= {"known_for": world.city(slots["city"]).known_for, "nights": "2"}
    groups = talk_templates.FRIENDS[rng.choice(("film" if work.premise else "meal", "meal", "trip", "buy"))]
    order = ["A", "B", "A2", "B2", "A3", "B3"][: rng.choice((4, 5, 6))]
    return [_say(first if group[0] == "A" else second, groups, group, slots, rng) for group in order]
