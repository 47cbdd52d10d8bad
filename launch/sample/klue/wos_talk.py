"""The course of a booking dialogue: who says what next, and what the guest has fixed so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from launch.sample.entities import Venue
from launch.sample.klue import wos_phrases as phrases
from launch.sample.klue.layout import expand, fill
from launch.sample.klue.wos_phrases import SLOTS
from launch.sample.numbers_ko import native

DAYS = ("월요일", "화요일", "수요일", "목요일", "금요일", "토요일", "일요일")


class Booth:
    """One dialogue in the making: its turns, the state, and the only source of randomness."""

    def __init__(self, rng: Random, venues: Sequence[Venue], stations: Sequence[str]) -> None:
        self.rng, self.venues, self.stations = rng, venues, stations
        self.turns: list[dict[str, Any]] = []
        self.state: dict[tuple[str, str], str] = {}
        self.last_venue: Venue | None = None

    def say(self, templates: Sequence[str], slots: Mapping[str, str]) -> str:
        return fill(expand(self.rng.choice(templates), self.rng), slots).text

    def ask(self, text: str) -> None:
        """A user turn with the state as it now is."""
        if not self.turns:
            text = self.rng.choice(phrases.GREETINGS) + text
        order = [(d, slot) for d, slots in SLOTS.items() for slot in slots]
        state = [f"{d}-{s}-{self.state[d, s]}" for d, s in order if (d, s) in self.state]
        self.turns.append({"role": "user", "text": text, "state": state})

    def answer(self, text: str) -> None:
        self.turns.append({"role": "sys", "text": text})

    def clock(self, first_hour: int = 7) -> str:
        return f"{self.rng.randint(first_hour, 20):02}:{self.rng.randrange(0, 60, 10):02}"

    def speak_time(self, clock: str) -> str:
        """18:30 or 18시 30분."""
        hour, minute = clock.split(":")
        spoken = f"{int(hour)}시" + (f" {int(minute)}분" if int(minute) else "")
        return self.rng.choice((clock, spoken))

    def speak_count(self, number: int) -> str:
        return f"{number}명" if self.rng.random() < 0.7 else f"{native(number)} 명"

    def opening(self) -> str:
        return self.rng.choice(phrases.NEXT) if self.turns else ""

    def part(self) -> None:
        self.ask(self.say(phrases.THANKS, {}))
        self.answer(self.say(phrases.WELCOME, {}))


def visit(booth: Booth, domain: str, is_only: bool = False) -> None:
    """Look for a restaurant, a room or a sight, and book it; talk on about it where it is the only business."""
    rng = booth.rng
    venue = rng.choice([venue for venue in booth.venues if venue.domain == domain])
    about = {"name": venue.name, "station": venue.station, "address": venue.address, "rating": f"{venue.rating:.1f}"}
    about["kind"] = _speak_kind(venue.kind, domain)
    _search(booth, venue)
    if venue.price_range:
        booth.answer(booth.say(phrases.ASK_PRICE, {}))
        _name_price(booth, venue)
    booth.answer(booth.say(phrases.OFFER, about))
    booth.state[domain, "이름"] = venue.name
    if domain == "관광":
        _discuss(booth, phrases.CHOOSE, about)
    else:
        _book(booth, venue)
    if is_only:
        _discuss(booth, phrases.MORE, about)
    booth.last_venue = venue


def _discuss(booth: Booth, pairs: Sequence[tuple[str, str]], about: Mapping[str, str]) -> None:
    """A question and its answer."""
    question, answer = booth.rng.choice(pairs)
    booth.ask(booth.say([question], about))
    booth.answer(booth.say([answer], about))


def _search(booth: Booth, venue: Venue) -> None:
    rng, domain = booth.rng, venue.domain
    wishes = [
        (trait, "yes" if there else "no", (phrases.WANTED if there else phrases.UNWANTED)[trait])
        for trait, there in venue.traits.items()
        if trait in (phrases.WANTED if there else phrases.UNWANTED)
    ]
    trait, value, wish = rng.choice(wishes) if wishes else ("", "", "괜찮은")
    if trait:
        booth.state[domain, trait] = value
    any_kind = rng.random() < 0.15
    booth.state[domain, "종류"] = "dontcare" if any_kind else venue.kind
    anywhere = rng.random() < 0.2
    booth.state[domain, "지역"] = "dontcare" if anywhere else venue.area
    slots = {
        "where": phrases.AREA.get(venue.area, venue.area),
        "kind": phrases.PLACE[domain] if any_kind else _speak_kind(venue.kind, domain),
        "trait": expand(wish, rng),
    }
    templates = phrases.SEARCH_ANYWHERE if anywhere else phrases.SEARCH
    more = " " + booth.say(phrases.ANY_KIND, {}) if any_kind else ""
    booth.ask(booth.opening() + booth.say(templates, slots) + more)


def _speak_kind(kind: str, domain: str) -> str:
    """공연 is a performance: one looks for a place where it is given."""
    return {"공연": "공연 관광지", "쇼핑": "쇼핑 관광지"}.get(kind, kind) if domain == "관광" else kind


def _name_price(booth: Booth, venue: Venue) -> None:
    if booth.rng.random() < 0.3:
        booth.state[venue.domain, "가격대"] = "dontcare"
        booth.ask(booth.say(phrases.ANY_PRICE, {}))
        return
    booth.state[venue.domain, "가격대"] = venue.price_range
    booth.ask(booth.say(phrases.TELL_PRICE, {"price": expand(phrases.PRICES[venue.price_range], booth.rng)}))


def _book(booth: Booth, venue: Venue) -> None:
    rng, domain = booth.rng, venue.domain
    people, nights, clock, day = rng.randint(1, 8), rng.randint(1, 5), booth.clock(first_hour=11), rng.choice(DAYS)
    booth.state |= {(domain, "예약 요일"): day, (domain, "예약 명수"): str(people)}
    if domain == "식당":
        booth.state[domain, "예약 시간"] = clock
    else:
        booth.state[domain, "예약 기간"] = str(nights)
    slots = {
        "name": venue.name,
        "day": day,
        "time": booth.speak_time(clock),
        "people": booth.speak_count(people),
        "nights": f"{nights}일",
    }
    booth.ask(booth.say(phrases.BOOK[domain], slots))
    code = "".join(rng.choice("ABCDEFGHJKLMNPQRSTUVWXYZ") for _ in range(4)) + str(rng.randint(1, 9))
    booth.answer(booth.say(phrases.BOOKED, {"code": code}))


def ride(booth: Booth) -> None:
    """A taxi, from the place just booked or from a station."""
    rng, domain = booth.rng, "택시"
    start = booth.last_venue.name if booth.last_venue else rng.choice(booth.stations)
    goal = rng.choice([station for station in booth.stations if station != start])
    car, when, clock = rng.choice(tuple(phrases.CARS)), rng.choice(tuple(phrases.LEAVE)), booth.clock()
    booth.state |= {(domain, "출발지"): start, (domain, "도착지"): goal}
    if car:
        booth.state[domain, "종류"] = car
    booth.state[domain, "출발 시간" if when == "dontcare" else when] = "dontcare" if when == "dontcare" else clock
    leave = fill(expand(phrases.LEAVE[when], rng), {"clock": booth.speak_time(clock)}).text
    slots = {"start": start, "goal": goal, "car": phrases.CARS[car], "leave": leave}
    booth.ask(booth.opening() + booth.say(phrases.TAXI, slots))
    plate = f"{rng.randint(31, 69)}{rng.choice('바사아자')} {rng.randint(1000, 9999)}"
    booth.answer(booth.say(phrases.TAXI_DONE, {"plate": plate}))


def travel(booth: Booth) -> None:
    """A train between two stations, now and then at a given time."""
    rng, domain = booth.rng, "지하철"
    near = booth.last_venue.station if booth.last_venue else rng.choice(booth.stations)
    goal = rng.choice([station for station in booth.stations if station != near])
    booth.state |= {(domain, "출발지"): near, (domain, "도착지"): goal}
    clock = booth.clock()
    timed = rng.random() < 0.4
    if timed:
        booth.state[domain, "출발 시간"] = clock
    slots = {"start": near, "goal": goal, "clock": booth.speak_time(clock)}
    booth.ask(booth.opening() + booth.say(phrases.METRO_AT if timed else phrases.METRO, slots))
    told = {"minutes": str(rng.randint(8, 55)), "fare": f"{rng.randrange(1200, 2400, 100):,}"}
    booth.answer(booth.say(phrases.METRO_DONE, told))
