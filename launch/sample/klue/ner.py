"""KLUE-NER from the sample's world: sentences whose entities are known because their slots were filled.

One character a line with its tag, spaces too, as in the official file; names of works and products are no entities
there. Tags: person PS, place LC, organisation OG, date DT, time TI, quantity QT (KLUE 3.4).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from random import Random

from launch.sample.entities import World
from launch.sample.klue.facts import Fact
from launch.sample.klue.layout import SIDES, Filled, cast, draw_distinct, expand, fill, write_text
from launch.sample.klue.sentences import tell_with_spans
from launch.sample.numbers_ko import count, won
from launch.sample.seeding import random_for

HEADER = (
    "## 토큰, 레이블 구분자 : \\t\n## 토큰 구분자 : \\n\n## 문장 구분자 : \\n\\n\n"
    "## 주석 : ##\n## 컬럼명 : CHAR\tNE_TAG\n"
)
TAGS = {  # slot to tag; slots that are not here are no entities
    "who": "PS", "spouse": "PS", "founder": "PS", "head": "PS", "other": "PS",
    "city": "LC", "province": "LC", "land": "LC", "station": "LC", "home": "LC", "district": "LC", "sight": "LC",
    "country": "LC",
    "org": "OG", "school": "OG", "club": "OG", "inn": "OG", "shop": "OG",
    "date": "DT", "year": "DT", "day": "DT", "month": "DT", "due": "DT",
    "time": "TI", "dawn": "TI", "hours": "TI", "running": "TI",
    "size": "QT", "price": "QT", "amount": "QT", "population": "QT", "people": "QT", "percent": "QT", "nth": "QT",
    "few": "QT", "crowd": "QT",
}  # fmt: skip
SCENES = (  # everyday and news sentences, beside those that tell facts
    "{who:은} {day} {time} {station:에서} {other:을} [만났다|기다렸다|배웅했다].",
    "{org:은} {day} {city}에서 [설명회를|채용 행사를|기념식을] 열었고 {people}이 찾았다.",
    "{day} {time}에 시작된 경기에서 {club:은} {nth} 승리를 거두었다.",
    "{club:은} {month} {city}에서 열린 경기에서 관중 {crowd} 앞에 섰다.",
    "{shop}에서 {who:과} 저녁을 먹었는데 {price}이 나왔다.",
    "{sight} 입장료는 {price}이고 {hours} 동안 둘러볼 수 있다.",
    "{inn}에 묵으면서 {sight}까지 걸어갔는데 {hours} 걸렸어요.",
    "{who:이} 나온 영화를 {day} {time}에 봤는데 {running}이 금방 지나갔다.",
    "{org:은} {month} 매출이 {percent} 늘었다고 밝혔다.",
    "{home} {district}에 사는 {who} 씨는 {time} [산책하러|운동하러|장을 보러] 나선다.",
    "{who} {org} 대표는 {day} {country} 방문을 마치고 돌아왔다.",
    "{people}의 학생이 {month} {school}에 입학했다.",
    "{time} {station} [앞|근처]에서 사고가 나 {few}이 다쳤다.",
    "{country:은} {month} {percent}의 관세를 매기기로 했다.",
    "{land} 정상에는 {dawn} 무렵 {people}이 모여 해돋이를 보았다.",
    "{who:은} {school:을} 나와 {org}에서 {nth} 책임자가 되었다.",
    "{org:이} {city}에 {price:을} 기부해 {people}이 도움을 받았다.",
    "{shop:은} {day}부터 음식값을 {percent} 올렸다.",
    "{who:과} {other}의 연기가 좋았고 {running} 내내 눈을 뗄 수 없었다.",
    "{inn} 예약은 {due} {time}까지 취소할 수 있다고 한다.",
    "비행기는 {time} {country:을} 떠나 {hours} 만에 도착했다.",
    "{year}에 입단한 {who:은} {club}에서 {nth} 우승을 노린다.",
    "[별 다섯 개도 모자란다|몇 번을 봐도 재미있다|연기가 살아 있다]. {who} [최고|만세]!",
    "이렇게 [재미있는|지루한] 영화는 처음이다.",
    "배우들 연기는 좋은데 이야기가 [조금|너무] 늘어진다.",
)
SCENE_SHARE = 0.6


def write_ner(
    world: World, facts: Mapping[str, Sequence[Fact]], seed: int, folder: Path, counts: Mapping[str, int]
) -> None:
    """Write klue-ner-v1.1_train.tsv and _dev.tsv."""
    pools, taken = name_pools(world), set[Hashable]()
    for side in SIDES:
        names = {slot: sides[side] for slot, sides in pools.items()}
        names |= {slot: pools[slot]["dev"] for slot in ("sight", "band")}
        sentences = draw_distinct(
            lambda attempt, side=side, names=names: draw_sentence(seed, side, attempt, facts[side], names),  # type: ignore[misc]
            lambda sentence: sentence.text,
            counts[side],
            taken,
            random_for(seed, "order", "klue-ner", side),
        )
        blocks = [_block(side, number, sentence) for number, sentence in enumerate(sentences)]
        write_text(folder / f"klue-ner-v1.1_{side}.tsv", [HEADER, *blocks])


def name_pools(world: World) -> dict[str, dict[str, list[str]]]:
    """Names by slot and side."""
    kinds = ("기업", "공공기관", "단체", "언론사", "병원", "출판사")
    pools = {
        "who": [person.name for person in world.people],
        "city": [city.name for city in world.cities],
        "home": [f"{city.name}/{district}" for city in world.cities for district in city.districts],
        "station": list(world.stations),
        "land": [land.name for land in world.landmarks if land.kind in ("산", "섬")],
        "country": [country.name for country in world.countries],
        "org": [o.name for o in world.organisations if o.kind in kinds],
        "school": [o.name for o in world.organisations if o.kind == "대학교"],
        "club": [o.name for o in world.organisations if o.kind == "구단"],
        "band": [o.name for o in world.organisations if o.kind == "밴드"],
        "sight": [venue.name for venue in world.venues if venue.domain == "관광"],
        "inn": [venue.name for venue in world.venues if venue.domain == "숙소"],
        "shop": [venue.name for venue in world.venues if venue.domain == "식당"],
    }
    return {slot: cast(names, world.seed, f"ner-{slot}") for slot, names in pools.items()}


def draw_sentence(
    seed: int, side: str, attempt: int, facts: Sequence[Fact], names: Mapping[str, Sequence[str]]
) -> Filled:
    """A sentence and the spans of its slots."""
    rng = random_for(seed, "klue-ner", side, attempt)
    if rng.random() < SCENE_SHARE:
        drawn = fill(expand(rng.choice(SCENES), rng), _slots(names, rng))
    else:
        drawn = _rename_slots(tell_with_spans(rng.choice(facts), rng), names)
    assert unicodedata.is_normalized("NFKC", drawn.text), drawn.text
    return drawn


def _rename_slots(sentence: Filled, names: Mapping[str, Sequence[str]]) -> Filled:
    """A fact's venue may be a sight (a place) or a business, its maker a person or a band."""
    spans = []
    for slot, start, end in sentence.spans:
        value = sentence.text[start:end]
        if slot == "venue":
            slot = "sight" if value in names["sight"] else "shop"
        elif slot == "who" and value in names["band"]:
            slot = "org"
        spans.append((slot, start, end))
    return Filled(sentence.text, tuple(spans))


def _slots(names: Mapping[str, Sequence[str]], rng: Random) -> dict[str, str]:
    slots = {slot: rng.choice(pool) for slot, pool in names.items()}
    slots["home"], slots["district"] = slots["home"].split("/")
    slots["other"] = rng.choice([name for name in names["who"] if name != slots["who"]])
    month, day = rng.randint(1, 12), rng.randint(1, 28)
    hour = rng.choice((f"오전 {rng.randint(7, 11)}시", f"오후 {rng.randint(1, 9)}시"))
    slots["day"] = rng.choice((f"{month}월 {day}일", f"지난 {day}일", f"{day}일", "지난 주말", "어제", "지난 월요일"))
    slots["month"] = rng.choice((f"지난해 {month}월", f"올해 {month}월", f"지난 {month}월", "지난달", f"{month}월"))
    slots["year"] = f"{rng.randint(2008, 2024)}년"
    slots["time"] = rng.choice((hour, f"{hour} {rng.randrange(5, 60, 5)}분", "새벽", "아침", "늦은 밤"))
    slots["dawn"] = rng.choice(("새벽", f"오전 {rng.randint(5, 7)}시"))
    slots["hours"] = rng.choice((f"{rng.randint(1, 4)}시간", f"{rng.randrange(10, 60, 5)}분", "두 시간", "반나절"))
    slots["people"] = rng.choice((count(rng.randrange(20, 900) * 10, "명"), f"{rng.randint(3, 99)}명", "수십 명"))
    slots["price"] = won(rng.choice((rng.randrange(30, 99) * 100, rng.randrange(11, 90) * 1000)))
    slots["few"] = rng.choice((f"{rng.randint(2, 40)}명", "두 명", "세 명", "수십 명"))
    slots["crowd"] = count(rng.randrange(20, 300) * 100, "명")
    slots["running"] = rng.choice(("두 시간", "세 시간", f"{rng.randrange(95, 185, 5)}분"))
    slots["due"] = f"{month}월 {day}일"
    slots["percent"] = f"{rng.randint(2, 45)}%"
    slots["nth"] = rng.choice(("첫 번째", "두 번째", "세 번째", "네 번째", "다섯 번째"))
    return slots


def tag_characters(sentence: Filled) -> list[str]:
    """B-, I- and O tags, one for each character."""
    tags = ["O"] * len(sentence.text)
    for slot, start, end in sentence.spans:
        if slot in TAGS:
            tags[start:end] = [f"I-{TAGS[slot]}"] * (end - start)
            tags[start] = f"B-{TAGS[slot]}"
    return tags


def _block(side: str, number: int, sentence: Filled) -> str:
    joint = "-" if side == "dev" else "_"  # as in the official files
    marked, done = "", 0
    for slot, start, end in sentence.spans:
        if slot in TAGS:
            marked += f"{sentence.text[done:start]}<{sentence.text[start:end]}:{TAGS[slot]}>"
            done = end
    marked += sentence.text[done:]
    lines = [f"{c}\t{tag}\n" for c, tag in zip(sentence.text, tag_characters(sentence), strict=True)]
    return f"## klue-ner-v1_{side}_{number:05}{joint}sample\t{marked}\n{''.join(lines)}\n"
