"""KLUE-MRC from the sample's world: short passages about people, organisations, places and works, with questions.

A passage leaves some of what is known unsaid; a question about that is unanswerable (type 3) and comes with a plausible
wrong answer, as in the official file (KLUE 3.7).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from launch.sample.entities import World
from launch.sample.klue.layout import SIDES, SLOT, Filled, cast, expand, fill, write_json
from launch.sample.klue.mrc_passages import PASSAGES, SUBJECTS
from launch.sample.klue.mrc_questions import ALIKE, QUESTIONS
from launch.sample.klue.mrc_subjects import Subject, subjects_of
from launch.sample.seeding import random_for

KEPT_SHARE = 0.7  # of the sentences after the first
IMPOSSIBLE_SHARE = 0.3
QUESTIONS_A_PASSAGE = (2, 2, 3, 4)
IMPOSSIBLE = 3  # question type


class Passage(NamedTuple):
    subject: Subject
    text: Filled

    @property
    def found(self) -> dict[str, tuple[int, int]]:
        """Slot to its first place in the text."""
        return {slot: (start, end) for slot, start, end in reversed(self.text.spans)}


def write_mrc(world: World, seed: int, folder: Path, counts: Mapping[str, int]) -> None:
    """Write klue-mrc-v1.1_train.json and _dev.json; ``counts`` are questions."""
    sides = cast(subjects_of(world, seed), world.seed, "klue-mrc")
    taken: set[str] = set()
    for side in SIDES:
        data, asked, attempt = [], 0, 0
        while asked < counts[side]:
            rng = random_for(seed, "klue-mrc", side, attempt)
            passage = write_passage(rng.choice(sides[side]), rng)
            attempt += 1
            if passage.text.text in taken:
                continue
            taken.add(passage.text.text)
            wanted = min(rng.choice(QUESTIONS_A_PASSAGE), counts[side] - asked)
            qas = ask(passage, wanted, rng)
            for number, question in enumerate(qas, asked):
                question["guid"] = f"klue-mrc-v1_{side}_{number:05}"
            asked += len(qas)
            data.append(_document(passage, qas))
        write_json(folder / f"klue-mrc-v1.1_{side}.json", {"version": "klue-mrc-v1.1", "data": data})


def _document(passage: Passage, qas: list[dict[str, Any]]) -> dict[str, Any]:
    title = passage.subject.slots[SUBJECTS[passage.subject.kind]]
    news = passage.subject.kind in ("venue", "work")
    return {
        "title": title,
        "paragraphs": [{"context": passage.text.text, "qas": qas}],
        "news_category": "생활/문화" if news else None,
        "source": "sample-news" if news else "sample-encyclopedia",
    }


def write_passage(subject: Subject, rng: Random) -> Passage:
    """The first sentence and most of those whose slots are known."""
    text, spans = "", []
    for number, alternatives in enumerate(PASSAGES[subject.kind]):
        template = rng.choice(alternatives)
        needed = {slot[1] for slot in SLOT.finditer(template)} - {""}
        if not needed <= set(subject.slots) or (number and rng.random() > KEPT_SHARE):
            continue
        filled = fill(template, subject.slots)
        offset = len(text) + 1 if text else 0
        text += (" " if text else "") + filled.text
        spans += [(slot, start + offset, end + offset) for slot, start, end in filled.spans]
    return Passage(subject, Filled(text, tuple(spans)))


def ask(passage: Passage, wanted: int, rng: Random) -> list[dict[str, Any]]:
    """Up to ``wanted`` questions about different slots."""
    questions = QUESTIONS[passage.subject.kind]
    found = passage.found
    told = [slot for slot in questions if slot in found]
    text = passage.text.text
    untold = [s for s in questions if s in passage.subject.slots and passage.subject.slots[s] not in text]
    qas = []
    for _ in range(wanted):
        slots = untold if untold and rng.random() < IMPOSSIBLE_SHARE else told
        if not slots:
            break
        slot = slots.pop(rng.randrange(len(slots)))
        kind, templates = questions[slot]
        question = fill(expand(rng.choice(templates), rng), passage.subject.slots).text
        if slot in found:
            qas.append(_record(question, kind, [_answer(passage, slot)], None))
        else:
            qas.append(_record(question, IMPOSSIBLE, [], [_answer(passage, _plausible(slot, found))]))
    return qas


def _plausible(slot: str, found: Mapping[str, tuple[int, int]]) -> str:
    """A slot of the passage that looks like an answer: of the same sort, else the first one."""
    alike: Sequence[str] = next((group for group in ALIKE if slot in group), ())
    return next((other for other in alike if other in found), next(iter(found)))


def _answer(passage: Passage, slot: str) -> dict[str, Any]:
    start, end = passage.found[slot]
    return {"text": passage.text.text[start:end], "answer_start": start}


def _record(question: str, kind: int, answers: list[Any], plausible: list[Any] | None) -> dict[str, Any]:
    return {
        "question": question,
        "answers": answers,
        **({"plausible_answers": plausible} if plausible else {}),
        "question_type": kind,
        "is_impossible": not answers,
        "guid": "",
    }
