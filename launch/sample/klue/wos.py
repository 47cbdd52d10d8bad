"""WoS from the sample's world: bookings of restaurants, rooms, sights, taxis and trains, with a state per user turn.

A guest's wishes are drawn from a venue of the world, which the assistant then offers, so what is said is true there.
States are lists of "domain-slot-value"; system turns carry none (KLUE 3.8).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

from launch.sample.entities import Venue, World
from launch.sample.klue.layout import SIDES, cast, draw_distinct, write_json
from launch.sample.klue.wos_phrases import SLOTS, YES_NO
from launch.sample.klue.wos_talk import DAYS, Booth, ride, travel, visit
from launch.sample.seeding import random_for

PLANS = (  # domains of a dialogue, in order
    ("식당",), ("숙소",), ("관광", "식당"), ("숙소", "택시"), ("식당", "택시"), ("관광", "지하철"), ("식당", "지하철"),
    ("관광", "숙소"), ("지하철", "식당"), ("관광", "택시"), ("택시", "숙소"), ("숙소", "지하철"),
)  # fmt: skip


def write_wos(world: World, seed: int, folder: Path, counts: Mapping[str, int]) -> None:
    """Write wos-v1.1_train.json, _dev.json and ontology.json."""
    sides = cast(world.venues, world.seed, "wos")
    taken: set[Hashable] = set()
    for side in SIDES:
        dialogues = draw_distinct(
            lambda attempt, side=side: hold_dialogue(seed, side, attempt, sides[side], world.stations),  # type: ignore[misc]
            lambda dialogue: tuple(turn["text"] for turn in dialogue["dialogue"] if turn["role"] == "user"),
            counts[side],
            taken,
            random_for(seed, "order", "wos", side),
        )
        for number, dialogue in enumerate(dialogues):
            dialogue["guid"] = f"wos-v1_{side}_{number:05}"
        write_json(folder / f"wos-v1.1_{side}.json", dialogues)
    write_json(folder / "ontology.json", ontology(world))


def hold_dialogue(
    seed: int, side: str, attempt: int, venues: Sequence[Venue], stations: Sequence[str]
) -> dict[str, Any]:
    """One dialogue of three to six user turns."""
    booth = Booth(random_for(seed, "wos", side, attempt), venues, stations)
    plan = PLANS[attempt % len(PLANS)]
    for domain in plan:
        if domain == "택시":
            ride(booth)
        elif domain == "지하철":
            travel(booth)
        else:
            visit(booth, domain, is_only=len(plan) == 1)
    booth.part()
    return {"guid": "", "domains": list(plan), "dialogue": booth.turns}


def ontology(world: World) -> dict[str, list[str]]:
    """Slot to its values, as in the official file: "none" and "dontcare" first."""
    clocks = [f"{hour:02}:{minute:02}" for hour in range(24) for minute in range(0, 60, 10)]
    places = [*world.stations, *(venue.name for venue in world.venues)]
    fixed = {
        "지역": sorted({venue.area for venue in world.venues}),
        "가격대": ["저렴", "적당", "비싼"],
        "예약 요일": list(DAYS),
        "예약 명수": [str(number) for number in range(1, 11)],
        "예약 기간": [str(number) for number in range(1, 11)],
        "예약 시간": clocks,
        "출발 시간": clocks,
        "도착 시간": clocks,
    }
    values: dict[str, list[str]] = {}
    for domain, slots in SLOTS.items():
        here = [venue for venue in world.venues if venue.domain == domain]
        own = {
            **fixed,
            "이름": [venue.name for venue in here],
            "종류": ["개인", "고급", "에코"] if domain == "택시" else sorted({venue.kind for venue in here}),
            "출발지": list(world.stations) if domain == "지하철" else places,
            "도착지": list(world.stations) if domain == "지하철" else places,
        }
        for slot in slots:
            values[f"{domain}-{slot}"] = ["none", "dontcare", *own[slot]] if slot in own else list(YES_NO)
    return values
