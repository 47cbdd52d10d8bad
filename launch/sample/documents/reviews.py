"""Short informal reviews of works, venues and products: 반말 and 존댓말, ㅋㅋ and ㅠㅠ, good, bad and mixed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from random import Random

from launch.sample.documents import openers
from launch.sample.documents import review_templates as templates
from launch.sample.documents.articles import Draft
from launch.sample.documents.fresh import freshest
from launch.sample.entities import Product, Venue, Work, World
from launch.sample.grammar import render_one
from launch.sample.numbers_ko import casual_won
from launch.sample.seeding import random_for

KINDS = {
    "영화": templates.SCREEN, "드라마": templates.SCREEN, "책": templates.BOOK, "앨범": templates.MUSIC,
    "식당": templates.RESTAURANT, "숙소": templates.HOTEL, "관광": templates.SIGHT,
}  # fmt: skip
REVIEWED = ("스마트폰", "서비스 로봇", "보조 배터리", "화장품", "간편식", "게임")
POLITE = re.compile(r"(요|니다|니다만|죠|네요)[ .!~^ㅎㅋㅠ;]*$")
OPENED = ("솔직히", "음", "나만", "진짜", "글쎄", "드디어", "이제야")
MOODS = {True: "good", False: "bad"}
STOPS = (".", "!", "?", "~", "ㅋ", "ㅎ", "ㅠ", "^", ";", "ㅡ")


def write_reviews(world: World, seed: int, number: int) -> list[Draft]:
    """``number`` reviews; every reviewable thing gets one before any gets another."""
    things: list[Work | Venue | Product] = [w for w in world.works if w.kind in KINDS]
    things += [*world.venues, *(product for product in world.products if product.kind in REVIEWED)]
    seen: set[str] = set()
    return [freshest(partial(_review, things[i * 11 % len(things)], i, seed), seen) for i in range(number)]


def _review(thing: Work | Venue | Product, number: int, seed: int, attempt: int) -> Draft:
    rng = random_for(seed, "reviews", number, attempt)
    groups, slots, title = _subject(thing, rng)
    good = rng.random() < 0.62
    picked = [(t, good) for t in rng.sample(groups[MOODS[good]], min(len(groups[MOODS[good]]), rng.randint(1, 3)))]
    if rng.random() < 0.25:
        picked.insert(rng.randrange(len(picked) + 1), (rng.choice(groups[MOODS[not good]]), not good))
    polite = rng.random() < 0.6
    text = [_stop(_say(groups["open"], slots, polite, rng, opening=True), True, rng)]
    text += [_stop(_say((template,), slots, polite, rng), mood, rng) for template, mood in picked]
    if rng.random() < 0.6:
        text.append(_stop(_say(groups["end" if good else "sad"], slots, polite, rng, opening=True), good, rng))
    return Draft(f"reviews-{number:05}", "reviews", title, tuple(text), _kind(thing))


def _say(templates: Sequence[str], slots: dict[str, str], polite: bool, rng: Random, *, opening: bool = False) -> str:
    """A sentence in the writer's manner of speech, where the templates offer it."""
    for _ in range(12):
        sentence = re.sub(r"([!?~ㅋㅎㅠ^;ㅡ])[.]+$", r"\1", render_one(templates, slots, rng))
        if bool(POLITE.search(sentence)) == polite:
            break
    if not opening and rng.random() < 0.35 and not sentence.startswith(OPENED):
        sentence = f"{rng.choice(openers.REVIEW)} {sentence}"
    return sentence


def _kind(thing: Work | Venue | Product) -> str:
    return thing.domain if isinstance(thing, Venue) else thing.kind


def _stop(sentence: str, good: bool, rng: Random) -> str:
    """A full stop where the writer did not end otherwise; some writers do not care."""
    plain = sentence.removesuffix(".") if rng.random() < 0.6 else sentence
    if plain.endswith(STOPS):
        return plain.replace("....", "...")
    return plain.rstrip(".") + rng.choice(openers.GOOD_TAILS if good else openers.BAD_TAILS)


def _subject(thing: Work | Venue | Product, rng: Random) -> tuple[Mapping[str, tuple[str, ...]], dict[str, str], str]:
    if isinstance(thing, Product):
        slots = {"product": thing.name, "maker": thing.maker, "noun": thing.kind, "price": casual_won(thing.price, rng)}
        return templates.PRODUCT, slots, thing.name
    if isinstance(thing, Venue):
        price = casual_won(thing.price, rng)
        slots = {"venue": thing.name, "city": thing.city, "station": thing.station, "speciality": thing.speciality,
                 "price": price, "fee": price if thing.price else "무료"}  # fmt: skip
        return KINDS[thing.domain], slots, thing.name
    star, costar, third = thing.cast or ("", "", "")
    slots = {"work": thing.title, "creator": thing.creator, "genre": thing.genre, "premise": thing.premise,
             "publisher": thing.publisher, "rating": f"{thing.rating}", "score": str(rng.randint(7, 10)),
             "star": star, "costar": costar, "third": third}  # fmt: skip
    return KINDS[thing.kind], slots, thing.title
