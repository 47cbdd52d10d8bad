"""KLUE-DP from the sample's world: sentences built as trees, so that head, relation and morphemes are known.

A sentence is one of thirteen patterns (coordination, relative clauses, quotation, purpose …) over the clause frames of
``dp_lexicon``; names of people, places and organisations come from the world (KLUE 3.6).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path

from launch.sample.entities import World
from launch.sample.klue import dp_lexicon as lexicon
from launch.sample.klue.conjugate import (
    ADNOMINAL,
    ADNOMINAL_FUTURE,
    AND,
    DECLARED,
    NOMINAL,
    PAST,
    PAST_AND,
    PAST_BUT,
    PAST_QUOTED,
    THEN,
)
from launch.sample.klue.dp_lexicon import FRAMES, NOUNS
from launch.sample.klue.dp_speaker import Names, Speaker
from launch.sample.klue.layout import SIDES, cast, draw_distinct, write_text
from launch.sample.klue.tree import Node, Row, adverbial, copula, noun, rows, verb
from launch.sample.seeding import random_for

THINGS = ("book", "art", "product", "site", "event")
HEADER = (
    "## 토큰, 레이블 구분자 : \\t\n## 토큰 구분자 : \\n\n## 문장 구분자 : \\n\\n\n## 주석 : ##\n"
    "## 칼럼명 : INDEX\tWORD_FORM\tLEMMA\tPOS\tHEAD\tDEPREL\n"
)


def say_simply(speaker: Speaker) -> Node:
    frame = speaker.frame()
    return speaker.clause(frame, PAST, subject=speaker.topic(frame.subject))


def join_actions(speaker: Speaker) -> Node:
    """One subject, two clauses: did this and did that."""
    actions = [f for f in FRAMES if f.subject in ("person", "group", "institution", "company") and f.timed]
    first = speaker.rng.choice(actions)
    second = speaker.rng.choice([f for f in actions if f.subject == first.subject and f is not first])
    before = speaker.clause(first, AND)
    return speaker.clause(second, PAST, timed=False).under(speaker.topic(first.subject), before)


def join_result(speaker: Speaker) -> Node:
    """The event took place and drew attention."""
    happened, drew = (f for f in FRAMES if f.subject == "event")
    before = speaker.clause(happened, THEN)
    return speaker.clause(drew, PAST, timed=False).under(speaker.topic("event"), before)


def join_subjects(speaker: Speaker) -> Node:
    """Two subjects, two clauses."""
    first = speaker.frame("person", "group", "institution", "company")
    second = speaker.rng.choice([f for f in FRAMES if f.subject == first.subject and f.timed == first.timed])
    ending = PAST_BUT if second is first else PAST_AND
    before = speaker.clause(first, ending, subject=speaker.phrase(first.subject, "은"))
    return speaker.clause(second, PAST, subject=speaker.phrase(second.subject, "은"), timed=False).under(before)


def describe_subject(speaker: Speaker) -> Node:
    """A relative clause on the subject: who had done this, did that."""
    first = speaker.frame("person", "institution", "company", "group")
    second = speaker.rng.choice([f for f in FRAMES if f.subject == first.subject and f is not first])
    subject = speaker.phrase(first.subject, speaker.rng.choice(("이", "은")), bare=True)
    relative = speaker.clause(first, ADNOMINAL, "VP_MOD", timed=False)
    return speaker.clause(second, PAST, subject=subject.under(relative))


def describe_object(speaker: Speaker) -> Node:
    """A relative clause on a thing: what somebody made, drew attention."""
    makers = [f for f in FRAMES if f.arguments[-1][0] in THINGS and f.arguments[-1][1] == "을"]
    made = speaker.rng.choice(makers)
    thing = made.arguments[-1][0]
    does = speaker.frame(thing)
    maker = speaker.phrase(made.subject, "이", bare=True)
    relative = speaker.clause(made, ADNOMINAL, "VP_MOD", subject=maker, gap=len(made.arguments) - 1)
    subject = speaker.phrase(thing, speaker.rng.choice(("이", "은")), bare=True).under(relative)
    return speaker.clause(does, PAST, subject=subject, timed=False)


def report_speech(speaker: Speaker) -> Node:
    frame = speaker.frame("institution", "company", "group", "event")
    said = speaker.clause(frame, PAST_QUOTED, "VP_CMP", subject=speaker.phrase(frame.subject, "이"))
    return verb(speaker.rng.choice(lexicon.SAYING), PAST).under(speaker.name("person", "은"), said)


def state_purpose(speaker: Speaker) -> Node:
    what, action = speaker.rng.choice(lexicon.PURPOSES)
    wish = verb(action, NOMINAL, "VP_OBJ").under(noun(what, "을"))
    helps = [f for f in FRAMES if "event" in {kind for kind, _ in f.arguments} and f.timed]
    frame = speaker.rng.choice([f for f in helps if f.subject != "person"])
    subject = speaker.topic(frame.subject)
    return speaker.clause(frame, PAST, timed=False).under(subject, verb("위하/VV", THEN).under(wish))


def state_plan(speaker: Speaker) -> Node:
    frame = speaker.rng.choice([f for f in FRAMES if f.subject in ("institution", "company", "person") and f.timed])
    plan = speaker.clause(frame, ADNOMINAL_FUTURE, "VP_MOD", timed=False)
    month = noun("달/NNG", "에").under(noun("다음/NNG"))
    time = speaker.rng.choice((noun("내년/NNG", "에"), month, noun(f"{speaker.rng.randint(1, 28)}/SN+일/NNB", "에")))
    end = copula(speaker.rng.choice(("예정/NNG", "계획/NNG")), was=False)
    return end.under(speaker.phrase(frame.subject, "은"), plan.under(time))


def say_what_it_is(speaker: Speaker) -> Node:
    """Somebody is (or was) a poet who did this."""
    frame = speaker.frame("person")
    end = copula(speaker.rng.choice(NOUNS["role"]), was=speaker.maybe(0.3))
    return end.under(speaker.name("person", "은", bare=True), speaker.clause(frame, ADNOMINAL, "VP_MOD"))


def say_what_it_became(speaker: Speaker) -> Node:
    post = noun(speaker.rng.choice(NOUNS["post"]), "이:JKC").under(speaker.name("institution", "의"))
    return verb("되/VV", PAST).under(speaker.name("person", "은"), speaker.when(), post)


def describe_place(speaker: Speaker) -> Node:
    one, other = speaker.rng.choice(lexicon.QUALITIES)
    ending = speaker.rng.choice((DECLARED, PAST))
    city = [speaker.name("city", "의")] if speaker.maybe(0.5) else []
    subject = speaker.phrase("site", speaker.rng.choice(("은", "이")), bare=True).under(*city)
    more = [adverbial(speaker.rng.choice(("매우/MAG", "꽤/MAG", "아주/MAG")))] if speaker.maybe(0.4) else []
    return verb(other, ending).under(subject, verb(one, AND), *more)


def state_cause(speaker: Speaker) -> Node:
    cause = noun("때문/NNB", "에").under(noun(speaker.rng.choice(NOUNS["trouble"])))
    place = [speaker.phrase("site", "에서")] if speaker.maybe(0.5) else []
    return verb(speaker.rng.choice(lexicon.MISHAPS), PAST).under(cause, speaker.phrase("event", "이"), *place)


PATTERNS: tuple[tuple[Callable[[Speaker], Node], int], ...] = (
    (say_simply, 5),
    (join_actions, 3),
    (join_result, 1),
    (join_subjects, 3),
    (describe_subject, 3),
    (describe_object, 3),
    (report_speech, 3),
    (state_purpose, 2),
    (state_plan, 2),
    (say_what_it_is, 2),
    (say_what_it_became, 1),
    (describe_place, 2),
    (state_cause, 1),
)


def draw_sentence(seed: int, side: str, attempt: int, names: Names) -> list[Row]:
    """One sentence as rows; the same arguments give the same sentence."""
    rng = random_for(seed, "klue-dp", side, attempt)
    pattern = rng.choices([p for p, _ in PATTERNS], [weight for _, weight in PATTERNS])[0]
    return rows(pattern(Speaker(rng, names)))


def write_dp(world: World, seed: int, folder: Path, counts: Mapping[str, int]) -> None:
    """Write klue-dp-v1.1_train.tsv and _dev.tsv."""
    pools, taken = name_pools(world), set[Hashable]()
    for side in SIDES:
        names = {kind: sides[side] for kind, sides in pools.items()}
        sentences = draw_distinct(
            lambda attempt, side=side, names=names: draw_sentence(seed, side, attempt, names),  # type: ignore[misc]
            lambda sentence: tuple(row.form for row in sentence),
            counts[side],
            taken,
            random_for(seed, "order", "klue-dp", side),
        )
        blocks = [_block(side, number, sentence) for number, sentence in enumerate(sentences)]
        write_text(folder / f"klue-dp-v1.1_{side}.tsv", [HEADER, *blocks])


def name_pools(world: World) -> dict[str, dict[str, list[str]]]:
    """Proper nouns by class and side."""
    institutions = ("대학교", "공공기관", "단체")
    pools = {
        "person": [person.name for person in world.people if not person.died],
        "city": [city.name for city in world.cities],
        "company": [o.name for o in world.organisations if o.kind == "기업" and not o.dissolved],
        "institution": [o.name for o in world.organisations if o.kind in institutions],
    }
    return {kind: cast(names, world.seed, f"dp-{kind}") for kind, names in pools.items()}


def _block(side: str, number: int, sentence: Sequence[Row]) -> str:
    text = " ".join(row.form for row in sentence)
    lines = "".join("\t".join(map(str, row)) + "\n" for row in sentence)
    return f"## klue-dp-v1_{side}_{number:05}_sample\t{text}\n{lines}\n"
