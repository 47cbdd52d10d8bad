"""KLUE-NER: one entity per line ("윤슬: 사람"), aligned with the characters of the sentence.

An entity is placed at the next occurrence of its text after the entity before it, else at the first free occurrence,
so a repeated entity needs one line per occurrence. Text that is not in the sentence is ignored: it is no false
positive. An unparsed answer counts as no entity.

In the official dev file, 13 of 14,255 gold entities are placed elsewhere: short ones, such as the surname 이, that
occur earlier inside another word (이후, later). Two sentences have stray I- tags, which are not entities. Gold answers
therefore score 99.93 entity F1.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from finetune.examples import Example
from finetune.generative.prompts.answers import answer_text, bare, lines_of
from finetune.generative.prompts.prompt import TaskPrompt, korean_texts
from finetune.tasks.ner.alignment import count_letters
from finetune.tasks.ner.task import OUTSIDE, find_entities

KINDS = {"PS": "사람", "LC": "장소", "OG": "기관", "DT": "날짜", "TI": "시간", "QT": "수량"}
NONE = "없음"
NONE_TOO = {NONE, "없습니다", "개체 없음", "개체가 없습니다", "해당 없음", "none"}
BY_WORD = {w: kind for kind, w in KINDS.items()} | {k: k for k in KINDS} | korean_texts("names")["klue-ner"]
_WORDS = "|".join(BY_WORD)
_TAIL = re.compile(rf"\s{{0,3}}[:\-–=→|/\t(\[]\s{{0,3}}[(\[]?({_WORDS})[)\]]?(?:입니다|이다|임)?\s{{0,3}}\|?[.,;]?$")
_QUOTED = re.compile(rf"^[\"'“‘](.+)[\"'”’]\s{{0,3}}:\s{{0,3}}[\"'“‘]({_WORDS})[\"'”’],?$")
_NAME = rf"({_WORDS})[)\]]?(?:\s?\((?:{_WORDS})\))?"
_HEAD = re.compile(rf"[\[(|\s]{{0,3}}{_NAME}\s{{0,3}}[:\-–=→|]\s{{0,3}}(.+)$")
_HEADING = re.compile(rf"[\[(]?{_NAME}\s?:?")  # "사람", above the lines with its entities
_NEXT_HEAD = re.compile(rf"\s?[,;/|]\s{{0,3}}(?={_NAME}\s?:)")
_NEXT = re.compile(
    rf"((?:{_WORDS})(?:[)\]](?=\s)|[)\]]?\s{{0,2}}(?=[,;/])))[,;/]?\s{{0,2}}"
)  # between entities on one line
_FIELDS = re.compile(
    r"(?:개체명|개체|단어|텍스트|entity|text)\s?:\s?([^\n]{1,80}?)\s{0,3}[,;/|(\n][\s-]{0,6}"
    rf"(?:종류|유형|개체 유형|타입|type)\s?:\s?({_WORDS})[)\]]?[,;]?"
)
Entity = tuple[str, str]  # text, kind


def render_input(example: Example) -> str:
    """The sentence."""
    return f"문장: {' '.join(example.inputs['text'].split())}"


def render_gold(example: Example) -> str:
    """One line per entity, in order; a stray I- tag is not an entity."""
    text = example.inputs["text"]
    entities = [(text[begin:end], kind) for kind, begin, end in find_entities(text, example.gold) if kind in KINDS]
    return "\n".join(f"{' '.join(words.split())}: {KINDS[kind]}" for words, kind in entities) or NONE


def parse(answer: str, example: Example) -> list[str] | None:
    """One tag per character except spaces; None if no line has the form of an entity or says 없음 (none)."""
    text, entities = example.inputs["text"], _read(answer, example.inputs["text"])
    if entities is None:
        return None
    tags = [OUTSIDE] * len(text)
    end = 0
    for words, kind in entities:
        if span := _place(words, text, tags, end):
            begin, end = span
            tags[begin:end] = [f"B-{kind}"] + [f"I-{kind}"] * (end - begin - 1)
    return [tag for tag, character in zip(tags, text, strict=True) if not character.isspace()]


def count_claims(answer: str, example: Example) -> int:
    """The number of entities that an answer names, also of those that are not in the text."""
    return len(_read(answer, example.inputs["text"]) or ())


def _read(answer: str, text: str) -> list[Entity] | None:
    """The entities of an answer; None if no line has the form of an entity or says that there are none."""
    all_entities, is_read, kind, is_listed = list[Entity](), False, "", True
    for line in _FIELDS.sub(r"\1: \2\n", answer_text(answer)).split("\n"):
        plain = (lines_of(line) or [""])[0]
        is_read = is_read or bare(plain).casefold() in NONE_TOO
        if heading := _HEADING.fullmatch(plain):
            kind = BY_WORD[heading[1]] if is_listed else ""
            continue
        entities = [*_entities(line, plain, text)]
        if kind and not entities:  # below a heading
            entities = [(word, kind) for word in map(bare, plain.split(",")) if word and _occurs(word, text)]
        elif entities:
            kind = ""
        # a word of the sentence alone on a line is followed by its kind, which then is no heading
        is_listed = is_listed and (bool(entities) or not plain or not _occurs(plain, text))
        all_entities += [(words, kind) for words, kind in entities if words not in NONE_TOO]
        is_read = is_read or bool(entities)
    return all_entities if is_read else None


def _occurs(words: str, text: str) -> bool:
    return words in text or _fold(words)[0] in _fold(text)[0]


def _entities(line: str, plain: str, text: str) -> Iterator[Entity]:
    """The entities of a line: one whose words occur in ``text``, as written or ``plain``, without Markdown and quotes;
    else several separated by commas or slashes."""
    for whole in (line.strip(), plain):
        if (entity := _entity(whole)) and _occurs(entity[0], text):
            yield entity
            return
    heads = [head for part in _NEXT_HEAD.sub("\n", plain).split("\n") if (head := _HEAD.match(part))]
    parts = [*filter(None, map(_entity, _NEXT.sub(r"\1\n", plain).split("\n")))]
    if len(heads) > 1 or not parts:  # "사람: 윤슬, 나래 / 장소: 달별"
        yield from ((bare(words), BY_WORD[head[1]]) for head in heads for words in head[2].split(","))
        return
    yield from ((bare(words), kind) for words, kind in parts)


def _entity(line: str) -> Entity | None:
    line = _QUOTED.sub(r"\1: \2", line)
    tail = _TAIL.search(line)
    words = line[: tail.start()].strip(" |").rpartition(" | ")[2] if tail else ""
    return (words, BY_WORD[tail[1]]) if tail and words else None


def _place(words: str, text: str, tags: list[str], after: int) -> tuple[int, int] | None:
    """The place of the words on free characters of ``text``."""
    return next((place for place in _places(words, text, after) if set(tags[slice(*place)]) == {OUTSIDE}), None)


def _places(words: str, text: str, after: int) -> Iterator[tuple[int, int]]:
    """Where the words occur: as written from ``after``, then from the beginning; then without spaces and full width."""
    for start in (after, 0):
        yield from ((begin, begin + len(words)) for begin in _find_all(words, text, start))
    target, (folded, places) = _fold(words)[0], _fold(text)
    yield from ((places[at], places[at + len(target) - 1] + 1) for at in (_find_all(target, folded) if target else ()))


def _find_all(part: str, text: str, start: int = 0) -> Iterator[int]:
    while (start := text.find(part, start)) >= 0:
        yield start
        start += 1


@lru_cache(maxsize=2)
def _fold(text: str) -> tuple[str, list[int]]:
    """The text in NFKC without spaces, and the original position of each character."""
    pairs = [(plain, place) for place, one in enumerate(text) for plain in unicodedata.normalize("NFKC", one)]
    pairs = [pair for pair in pairs if not pair[0].isspace()]
    return "".join(plain for plain, _ in pairs), [place for _, place in pairs]


KLUE_NER = TaskPrompt(
    task="klue-ner",
    render_input=render_input,
    render_gold=render_gold,
    parse=parse,
    unparsed=lambda example: [OUTSIDE] * count_letters(example),
    max_tokens=384,
    shot_class=lambda e: next((kind for kind, *_ in find_entities(e.inputs["text"], e.gold)), NONE),  # the first
)
