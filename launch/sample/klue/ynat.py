"""KLUE-YNAT from the sample's world: headlines of seven topics, in the clipped style of Korean news titles.

The topics share cities, companies and people, so that it is the wording that tells them apart (KLUE 3.1).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from launch.sample.entities import World
from launch.sample.klue.headlines import FEATS, HEADLINES
from launch.sample.klue.layout import SIDES, cast, draw_distinct, expand, fill, write_json
from launch.sample.numbers_ko import grouped
from launch.sample.seeding import random_for

TOPICS = tuple(HEADLINES)
WRONG_CATEGORY_SHARE = 0.1  # the portal's own category is not the annotators' label for about a tenth
JUDGES = 3
UNSEEN_TEMPLATES = 3  # of each topic occur in dev only


def write_ynat(world: World, seed: int, folder: Path, counts: Mapping[str, int]) -> None:
    """Write ynat-v1.1_train.json and _dev.json; topics take turns."""
    pools, taken = name_pools(world), set[Hashable]()
    for side in SIDES:
        names = {kind: sides[side] for kind, sides in pools.items()}
        titles = draw_distinct(
            lambda attempt, side=side, names=names: draw_title(seed, side, attempt, names),  # type: ignore[misc]
            lambda drawn: drawn[0],
            counts[side],
            taken,
            random_for(seed, "order", "ynat", side),
        )
        write_json(
            folder / f"ynat-v1.1_{side}.json",
            [_record(seed, side, number, *drawn) for number, drawn in enumerate(titles)],
        )


KINDS = {
    "대학교": "school", "단체": "charity", "정당": "party", "병원": "hospital", "밴드": "band",
}  # fmt: skip
TECHNICAL = ("전자제품", "소프트웨어", "게임", "로봇", "통신 서비스", "배터리", "전기차")
SCIENCE = ("연구원", "연구소", "기술원")
GADGETS = ("스마트폰", "애플리케이션", "서비스 로봇", "게임")


def name_pools(world: World) -> dict[str, dict[str, list[str]]]:
    """Names that headlines use, by slot and side; names that belong together are joined by a slash."""
    companies = [o for o in world.organisations if o.kind == "기업" and not o.dissolved]
    works = {kind: [w.title for w in world.works if w.kind == kind] for kind in ("영화", "책", "축제", "전시")}
    science = [o.name for o in world.organisations if o.kind == "공공기관" and o.name.endswith(SCIENCE)]
    pools = {
        **{slot: [o.name for o in world.organisations if o.kind == kind] for kind, slot in KINDS.items()},
        "agency": science,
        "company": [o.name for o in companies],
        "tech": [o.name for o in companies if o.field in TECHNICAL],
        "bank": [o.name for o in companies if o.field == "금융"] or [o.name for o in companies],
        "politician": [p.name for p in world.people if p.occupation in ("정치인", "국회의원")],
        "star": [p.name for p in world.people if p.occupation == "배우"],
        "singer": [p.name for p in world.people if p.occupation == "가수"],
        "author": [p.name for p in world.people if p.occupation in ("소설가", "시인")],
        "team": [f"{o.field}/{o.name}/{name}" for o in world.organisations if o.kind == "구단" for name in o.members],
        "city": [city.name for city in world.cities],
        "state": [f"{c.name}/{c.capital}/{c.leader_title}/{c.leader.split()[-1]}" for c in world.countries],
        "film": works["영화"],
        "book": works["책"],
        "festival": works["축제"],
        "show": works["전시"],
        "gadget": [p.name for p in world.products if p.kind in GADGETS],
        "mountain": [land.name for land in world.landmarks if land.kind == "산"],
    }
    return {slot: cast(names, world.seed, f"ynat-{slot}") for slot, names in pools.items()}


def draw_title(seed: int, side: str, attempt: int, names: Mapping[str, Sequence[str]]) -> tuple[str, str]:
    """A headline and its topic."""
    rng = random_for(seed, "ynat", side, attempt)
    topic = TOPICS[attempt % len(TOPICS)]
    templates = HEADLINES[topic][:-UNSEEN_TEMPLATES] if side == "train" else HEADLINES[topic]
    template = expand(rng.choice(templates), rng)
    return fill(template, _slots(names, rng)).text, topic


def _slots(names: Mapping[str, Sequence[str]], rng: Random) -> dict[str, str]:
    slots = {kind: rng.choice(pool) for kind, pool in names.items()}
    slots["country"], slots["capital"], slots["post"], slots["leader"] = slots["state"].split("/")
    sport, slots["club"], slots["player"] = slots["team"].split("/")
    names = {
        **names,
        "country": [state.split("/")[0] for state in names["state"]],
        "club": [team.split("/")[1] for team in names["team"]],
    }
    for kind in ("party", "country", "club", "company"):
        slots[f"{kind}2"] = rng.choice([name for name in names[kind] if name != slots[kind]])
    same_sport = [t.split("/")[1] for t in names["team"] if t.startswith(sport)]
    slots["club2"] = rng.choice([club for club in same_sport if club != slots["club"]] or [slots["club2"]])
    slots["money"] = grouped(rng.randrange(3, 90) * 10 ** rng.choice((8, 9, 10)))
    slots["percent"] = f"{rng.randrange(11, 189) / 10}"
    slots["people"] = grouped(rng.randrange(12, 99) * 10 ** rng.choice((0, 1, 2)))
    slots["tens"] = str(rng.randrange(12, 99) * 10)
    slots["small"] = str(rng.randint(2, 9))
    slots["months"] = str(rng.randint(2, 12))
    slots["feat"] = fill(rng.choice(FEATS[sport]), slots).text
    return slots


def _record(seed: int, side: str, number: int, title: str, topic: str) -> dict[str, Any]:
    rng = random_for(seed, "ynat-record", side, number)
    category = rng.choice(TOPICS) if rng.random() < WRONG_CATEGORY_SHARE else topic
    month, day, hour, minute = rng.randint(1, 12), rng.randint(1, 28), rng.randrange(24), rng.randrange(60)
    return {
        "guid": f"ynat-v1_{side}_{number:05}",
        "title": title,
        "predefined_news_category": category,
        "label": topic,
        "annotations": {
            "annotators": [f"{judge:02}" for judge in range(1, JUDGES + 1)],
            "annotations": {"first-scope": [topic] * JUDGES, "second-scope": ["해당없음"] * JUDGES},
        },
        "url": f"https://news.example.com/{side}/{number:05}",
        "date": f"2024.{month:02}.{day:02}. {'오전' if hour < 12 else '오후'} {hour % 12 or 12}:{minute:02}",
    }
